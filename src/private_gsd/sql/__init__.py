"""SQL: conditions on a row, from their text to checked expressions; and rules that rows meet."""
