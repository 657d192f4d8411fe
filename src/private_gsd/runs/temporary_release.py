"""Temporary releases: folders that go when nobody uses them any more."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path

from private_gsd.runs.release import Release


class TemporaryRelease(Release):
    """A release in a new folder, which is removed with this object or at the end of the process."""

    def __init__(self) -> None:
        super().__init__(Path(tempfile.mkdtemp(prefix="private-gsd-")) / "release")
        above = self.folder.parent
        self._removal = weakref.finalize(self, shutil.rmtree, above, ignore_errors=True)

    def persist(self) -> None:
        """Do not remove the folder."""
        self._removal.detach()
