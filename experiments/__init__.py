"""The paper's figures and tables, by one command each: ``python -m experiments NAME``."""
