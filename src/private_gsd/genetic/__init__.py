"""The genetic search: noisy answers to a synthetic table that answers alike."""
