"""The ledger: what may be disclosed about a dataset in total, and every charge against it."""
