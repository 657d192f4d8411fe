"""Runs: the release folder, its files and checkpoints, and the runner that fills it."""
