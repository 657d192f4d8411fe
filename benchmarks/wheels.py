"""Wheels: for which systems and versions of Python every dependency can be installed as it is.

    python -m benchmarks.wheels INDEX

Asks a package index, by the address of its JSON interface, for the newest release of each
dependency in ``pyproject.toml`` that has a wheel for a system, and prints a table. A version is
named where it is not the newest of all.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.tags import Tag
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from packaging.version import Version

PYTHONS = (11, 12, 13, 14)
# For each system, how its marker names it and which platforms of wheels it installs.
SYSTEMS = {
    "Linux, x86": ("linux", r"any|manylinux.*_x86_64"),
    "Linux, ARM": ("linux", r"any|manylinux.*_aarch64"),
    "macOS, Apple silicon": ("darwin", r"any|macosx_.*_(arm64|universal2)"),
    "macOS, Intel": ("darwin", r"any|macosx_.*_(x86_64|universal2|intel)"),
    "Windows, x86": ("win32", r"any|win_amd64"),
}
# Those of the package itself come first; tools for development are not looked up.
EXTRAS = (
    *("", "pandas", "polars", "yaml", "accounting", "spark", "postgres", "sweeps"),
    *("evaluation", "baselines"),
)
# Compiled parts of Numba and JAX, which are packages of their own.
PARTS = {"llvmlite": ("llvmlite>=0.44", ""), "jaxlib": ("jaxlib>=0.10.2", "baselines")}


@dataclass(frozen=True)
class File:
    """A file of the index.

    Attributes:
        version: The version of the release.
        tags: What the wheel fits; nothing for a source distribution.
        python: The versions of Python that the release is for.
    """

    version: Version
    tags: frozenset[Tag]
    python: SpecifierSet

    def fits(self, platforms: str, python: int) -> bool:
        """Whether the wheel can be installed on a platform, with Python 3 of this version."""
        return self.python.contains(f"3.{python}.0") and any(
            re.fullmatch(platforms, tag.platform) and _runs(tag, python) for tag in self.tags
        )


def _runs(tag: Tag, python: int) -> bool:
    """Whether a wheel is for Python 3 of this version."""
    if tag.interpreter in ("py3", f"py3{python}"):
        return tag.abi == "none"
    found = re.fullmatch(r"cp3(\d+)", tag.interpreter)
    if found is None:
        return False
    made = int(found[1])
    return made == python if tag.abi == f"cp3{made}" else tag.abi == "abi3" and made <= python


def main() -> None:
    """Print the table."""
    if len(sys.argv) != 2:
        sys.exit("name the address of a package index: python -m benchmarks.wheels INDEX")
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted: dict[str, tuple[Requirement, str]] = {}
    for extra in EXTRAS:
        texts = project["optional-dependencies"][extra] if extra else project["dependencies"]
        for requirement in map(Requirement, texts):
            wanted.setdefault(canonicalize_name(requirement.name), (requirement, extra))
    wanted |= {name: (Requirement(text), extra) for name, (text, extra) in PARTS.items()}
    with ThreadPoolExecutor(4) as pool:
        files = dict(zip(wanted, pool.map(partial(_files, sys.argv[1]), wanted), strict=True))
    print(f"| dependency | extra | newest | {' | '.join(SYSTEMS)} |")
    print(f"|---|---|---|{'---|' * len(SYSTEMS)}")
    for name, (requirement, extra) in wanted.items():
        found = [each for each in files[name] if requirement.specifier.contains(each.version)]
        newest = max(each.version for each in found)
        cells = [_cell(requirement, found, newest, *SYSTEMS[system]) for system in SYSTEMS]
        print(f"| {name} | {extra} | {newest} | {' | '.join(cells)} |")


def _cell(
    requirement: Requirement, files: Sequence[File], newest: Version, system: str, platforms: str
) -> str:
    """The versions of Python, after the version of the release if it is not the newest."""
    environment: dict[str, Any] = {**default_environment(), "sys_platform": system}
    if requirement.marker is not None and not requirement.marker.evaluate(environment):
        return "not needed"
    pythons: dict[Version, list[int]] = {}
    for python in PYTHONS:
        fitting = [each.version for each in files if each.fits(platforms, python)]
        if fitting:
            pythons.setdefault(max(fitting), []).append(python)
    if not pythons:
        return "source" if any(not each.tags for each in files) else "–"
    return "; ".join(
        ("" if version == newest else f"{version}: ") + _span(found)
        for version, found in sorted(pythons.items(), reverse=True)
    )


def _span(pythons: Sequence[int]) -> str:
    first, last = pythons[0], pythons[-1]
    whole = len(pythons) == last - first + 1
    words = f"3.{first}–3.{last}" if whole else ", ".join(f"3.{each}" for each in pythons)
    return f"3.{first}" if first == last else words


def _files(index: str, name: str) -> list[File]:
    """All files of a project that are no pre-releases and were not withdrawn."""
    with urllib.request.urlopen(f"{index}/{name}/json", timeout=60) as answer:
        releases = json.load(answer)["releases"]
    return [file for files in releases.values() for file in _parsed(files)]


def _parsed(files: Sequence[dict[str, Any]]) -> Iterator[File]:
    for each in files:
        if each.get("yanked"):
            continue
        name, tags = each["filename"], frozenset[Tag]()
        try:
            if name.endswith(".whl"):
                _, version, _, tags = parse_wheel_filename(name)
            else:
                _, version = parse_sdist_filename(name)
        except (InvalidWheelFilename, InvalidSdistFilename):
            continue
        if not version.is_prerelease:
            yield File(version, tags, SpecifierSet(each.get("requires_python") or ""))


if __name__ == "__main__":
    main()
