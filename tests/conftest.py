"""Settings that all tests share."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

# Machines are noisy: no test fails for its time. Failing examples are printed to be replayed.
settings.register_profile(
    "default",
    deadline=None,
    max_examples=60,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)

settings.register_profile("thorough", parent=settings.get_profile("default"), max_examples=1500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# Kernels have a small form, and a large one with predicates, sums and rules, which takes a minute
# or two to compile: whoever needs it goes to one worker, and it is compiled once.
LARGE = {"test_rules", "test_evidence", "test_conditional", "test_sums", "test_predicates"}
LARGE |= {"test_knowledge_cli"}
LARGE_CASES = ("predicates", "all of them")
# Long ones begin first; those that bring threads of their own come last, when servers have started.
ORDER = {"engines": 0, "large": 1, "baselines": 3}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say which tests go to one worker, and in which order they come."""

    def place(item: pytest.Item) -> int:
        marks = [str(mark.args[0]) for mark in item.iter_markers("xdist_group")]
        return min((ORDER.get(mark, 2) for mark in marks), default=2)

    for item in items:
        if item.path.parent.name == "baselines":
            item.add_marker(pytest.mark.xdist_group("baselines"))
        elif item.path.stem in LARGE or (
            item.path.parent.name == "genetic" and any(case in item.name for case in LARGE_CASES)
        ):
            item.add_marker(pytest.mark.xdist_group("large"))
    items.sort(key=place)
