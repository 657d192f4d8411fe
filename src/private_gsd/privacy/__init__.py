"""Privacy: budget, mechanisms and ledger. The only place where noise is drawn."""
