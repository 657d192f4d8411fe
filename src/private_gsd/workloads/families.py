"""The registry of families.

Before you add a family, see first whether a predicate does it (``workloads.predicates``): queries
that can be written as conditions in SQL need no new family, and are fast.

To add a family, write one file with a subclass of ``Family`` that has:

- ``name``, ``title`` and ``schema``;
- ``group_sizes``, ``select``, ``describe`` and ``squared_sensitivities``; a subclass of
  ``SingleQueries`` defines ``size`` instead of ``group_sizes`` and ``squared_sensitivities``;
- either ``met``, which decides for each row and query whether the row meets the query, or a faster
  ``count`` together with ``lay_out``, which lays the queries out for the kernels of the search;
- ``to_document`` and ``from_document``, if the queries can be saved;
- ``search_cost``, if the estimate of ``Family`` is far off.

A family with ``met`` alone moves the whole search from ``CoordinateSearch`` to ``FunctionSearch``,
which calls ``met`` for every batch of rows. ``FunctionSearch`` is much slower.

Then add the class to this registry, and a subclass of ``FamilyContract`` to
``tests/workloads/test_families.py``, which tests every family in the same way. To give users a
name for the queries, add a line to ``specs.SPECS``. ``tests/workloads/test_toy_family.py`` is an
example of all of this.

A family with a kernel of its own adds one file to ``kernels``, a call in ``kernels/edits.py``, and
an ``add_`` method to ``QueryLayout``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from private_gsd.workloads.conjunctions import Conjunctions
from private_gsd.workloads.functions import Functions
from private_gsd.workloads.halfspaces import Halfspaces
from private_gsd.workloads.histograms import Histograms
from private_gsd.workloads.marginals import Marginals
from private_gsd.workloads.patterns import Patterns
from private_gsd.workloads.predicates import Predicates
from private_gsd.workloads.sums import Sums

if TYPE_CHECKING:
    from private_gsd.workloads.family import Family

FAMILIES: dict[str, type[Family]] = {
    family.name: family
    for family in (
        Marginals,
        Histograms,
        Patterns,
        Conjunctions,
        Halfspaces,
        Predicates,
        Sums,
        Functions,
    )
}
