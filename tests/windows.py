"""What tests need that Windows does not allow."""

from __future__ import annotations

import sys

import pytest

removes_open_files = pytest.mark.skipif(
    sys.platform == "win32", reason="Windows does not remove a file that a program has open"
)
