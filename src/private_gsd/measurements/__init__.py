"""Measurements: noisy answers with variances, ours and others', and what follows from them."""
