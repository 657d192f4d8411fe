"""Metrics: one module for each; encoded tables in, frozen values out."""
