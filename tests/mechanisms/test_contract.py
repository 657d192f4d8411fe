"""Every mechanism of the registry keeps the contract."""

from __future__ import annotations

import pytest

from private_gsd import Mechanism
from private_gsd.mechanisms.registry import MECHANISMS
from tests.mechanisms.contract import MechanismContract


class TestRegistered(MechanismContract):
    """Each mechanism, with its default settings."""

    @pytest.fixture(params=list(MECHANISMS))
    def mechanism(self, request: pytest.FixtureRequest) -> Mechanism:
        return MECHANISMS[request.param]()
