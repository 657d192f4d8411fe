"""Denoising: what noisy answers most likely were before the noise, by the measurements alone."""
