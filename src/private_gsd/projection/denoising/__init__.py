"""Denoising: estimates of the answers before the noise, from the measurements alone."""
