"""Privacy: budget, conversions, noise and ledger. The only place where noise is drawn."""
