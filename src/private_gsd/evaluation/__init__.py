"""Evaluation: how good a synthetic table is. Evaluations read the sensitive data, and say so."""

from private_gsd.evaluation.evaluate import evaluate
from private_gsd.evaluation.report.evaluation_report import evaluation_page
from private_gsd.evaluation.report.release_report import release_page
from private_gsd.evaluation.report.writing import write_report
from private_gsd.evaluation.result import Evaluation

__all__ = ["Evaluation", "evaluate", "evaluation_page", "release_page", "write_report"]
