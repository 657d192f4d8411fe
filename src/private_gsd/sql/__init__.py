"""SQL: conditions on a row, from their text to checked expressions; rules that every row meets."""
