"""Evaluation: how good a synthetic table is. Most of it reads the sensitive data, and says so."""

from private_gsd.evaluation.evaluate import evaluate
from private_gsd.evaluation.report.release_report import release_page
from private_gsd.evaluation.result import Evaluation

__all__ = ["Evaluation", "evaluate", "release_page"]
