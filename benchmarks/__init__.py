"""Benchmarks: each hot path beside what a user would write instead, as a ratio from one run."""
