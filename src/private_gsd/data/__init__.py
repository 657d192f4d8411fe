"""Data: tables of any kind to record batches, and record batches to numbers and back."""
