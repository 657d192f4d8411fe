"""The ledger: what may be disclosed about a dataset in total, and every charge against it."""

from private_gsd.privacy.ledger.ledger import Ledger

__all__ = ["Ledger"]
