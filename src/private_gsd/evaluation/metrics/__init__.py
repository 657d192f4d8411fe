"""Metrics: one module per metric; each takes encoded tables and returns frozen values."""
