"""Units of protection: of each unit at most K rows are taken, before anything is counted."""
