"""Synthesis: what users call. A fit, many fits of one table, and samples of a release."""
