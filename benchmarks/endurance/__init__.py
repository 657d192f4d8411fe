"""Endurance: kills, races and damaged files, and what became of the ledger and of releases."""
