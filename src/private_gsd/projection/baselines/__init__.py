"""The paper's baselines as projectors: RAP, RAP++, GEM and graphical models (PGM)."""
