"""The registry of families.

To add a family, write one file with a subclass of ``Family``:

- ``name`` and ``title``, and a ``schema``;
- ``group_sizes``, ``select``, ``describe`` and ``squared_sensitivities``; a subclass of
  ``SingleQueries`` has ``size`` in place of the first and the last;
- either ``met``, which says what rows meet each query, or a faster ``count`` and ``lay_out``, which
  lays the queries out for the kernels of the search;
- ``to_document`` and ``from_document``, if the queries can be saved;
- ``search_cost``, if the estimate of ``Family`` is far off.

Then add the class to this registry, and a subclass of ``FamilyContract`` to
``tests/workloads/test_families.py``: every family is held to the same contract. A name for users is
a line in ``specs.SPECS``. ``tests/workloads/test_toy_family.py`` shows all of this.

A kernel of its own goes into one file of ``kernels``, is called from ``kernels/edits.py``, and gets
an ``add_`` method in ``QueryLayout``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from private_gsd.workloads.conjunctions import Conjunctions
from private_gsd.workloads.functions import Functions
from private_gsd.workloads.halfspaces import Halfspaces
from private_gsd.workloads.marginals import Marginals
from private_gsd.workloads.predicates import Predicates
from private_gsd.workloads.sums import Sums

if TYPE_CHECKING:
    from private_gsd.workloads.family import Family

FAMILIES: dict[str, type[Family]] = {
    family.name: family
    for family in (Marginals, Conjunctions, Halfspaces, Predicates, Sums, Functions)
}
