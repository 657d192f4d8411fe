"""Serial form: only what is registered is loaded; every family tests the round trip."""

from __future__ import annotations

import pytest

from private_gsd.errors import WorkloadError
from private_gsd.workloads.serialisation import load_workload
from tests.sql.people import SCHEMA


@pytest.mark.parametrize("name", ["quantiles", None, 3, ["marginals"]])
def test_families_that_nobody_registered_are_not_loaded(name: object) -> None:
    with pytest.raises(WorkloadError, match="unknown family of queries"):
        load_workload(SCHEMA, [{"family": name}], {})
    with pytest.raises(WorkloadError, match="there are no queries"):
        load_workload(SCHEMA, [], {})


def test_python_functions_are_not_loaded() -> None:
    with pytest.raises(WorkloadError, match="unknown family of queries 'functions'"):
        load_workload(SCHEMA, [{"family": "functions"}], {})
