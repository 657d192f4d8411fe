"""The ledger: the total privacy budget of each dataset, and every charge to it."""

from private_gsd.privacy.ledger.ledger import Ledger

__all__ = ["Ledger"]
