"""Metrics: one module for each, values in and values out."""
