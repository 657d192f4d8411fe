"""Data: anything tabular to record batches, record batches to numbers and back."""
