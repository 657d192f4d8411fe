"""Exact counts of a workload: on threads here, on Spark there."""
