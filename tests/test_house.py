"""The rules of the house: where things are, what they are called, what users may type.

Identifiers are read from the syntax trees. A word counts where it is one of the words of an
identifier (``keep_table`` has ``keep``), never within a longer word.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, get_args

import pytest

import private_gsd
from private_gsd import workloads
from private_gsd.privacy.budget import Conversion

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "private_gsd"
TESTS = ROOT / "tests"
SOURCES = sorted(PACKAGE.rglob("*.py"))
MANUAL = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES = [*MANUAL, ROOT / "CONTRIBUTING.md"]

MOST_ENTRIES = 18
MOST_LINES = 400
# A longer file says why within its first lines.
REASON_WITHIN = 15
REASON = re.compile(r"\blong\b.*\bbecause\b", re.IGNORECASE | re.DOTALL)


class Retired(NamedTuple):
    """Words that are no longer used.

    Attributes:
        words: Separated by spaces; a word of several parts is joined by underscores. A word that
            begins with ``=`` is retired as a whole identifier alone.
        say: What stands there instead.
        where: Folders and files of the package in which the words had the retired meaning;
            everywhere if there are none. Elsewhere they are ordinary English.
    """

    words: str
    say: str
    where: str = ""


# Where a fit is set up and carried out.
FITTING = "mechanisms runs synthesis synthesizer.py sampling.py integrations"
COMMANDS = "cli/options.py cli/synthesize.py cli/plan.py cli/demo.py"
RUNNING = f"privacy {FITTING} cli"
# What may report how far it is.
REPORTING = f"counting measurements projection system evaluation/evaluate.py {RUNNING}"
# Not here: words that the code needs in another sense everywhere (``row``, ``group``, ``done``,
# ``gaussian``, ``curve``, ``mechanisms``).
RETIRED = (
    # Privacy
    Retired("other_relation", "neighbouring datasets: replace-one, add/remove"),
    Retired("who_is_protected", "unit of protection"),
    Retired("tight", "zcdp"),
    Retired("keep kept hold held", "reserve, commit; save", f"privacy {FITTING} {COMMANDS}"),
    Retired("keep kept hold held", "reserve, commit", "cli/ledger.py"),
    Retired("free frees freed give_back given_back", "cancel", "privacy cli/ledger.py"),
    Retired("plan plans shares", "allocation", "privacy"),
    Retired("chance chances", "probability"),
    Retired("house", "sensitive data, on the steward's side; published"),
    # Measuring
    Retired("asked measurable", "target workload, candidate queries"),
    Retired("=groups", "queries_per_epoch", "cli runs/settings.py mechanisms/adaptive.py"),
    Retired("answering", "counting"),
    Retired("tally tallies", "marginal estimates"),
    Retired("evidence", "external measurements"),
    Retired("outside", "external", f"measurements evaluation {RUNNING}"),
    Retired("totals", "public counts", f"measurements evaluation {RUNNING}"),
    Retired("=derived targets", "derived statistics", f"measurements privacy {FITTING} {COMMANDS}"),
    Retired("people", "number of records, n_records"),
    Retired("=invalid", "on_invalid"),
    # Projection
    Retired("=search", "projection, projector", RUNNING),
    Retired("smooth smooths smoothed smoother smoothing", "denoise, denoising"),
    Retired("drawn_table drawn_tables heat_bath anneal annealed annealing", "Gibbs sampler, chain"),
    Retired("forest forests", "Chow–Liu forest", "projection kernels"),
    Retired("kinds", "latent classes", "projection/denoising kernels"),
    Retired("doubt doubts", "prior strength", "projection kernels"),
    Retired("usual", "prior mean", "projection kernels"),
    Retired("strengths", "variance components", "projection kernels"),
    Retired("lifts", "log-lifts", "projection kernels"),
    Retired("slope slopes", "gradient", "projection"),
    Retired("visit visits visited", "sweep, coordinate search"),
    Retired("misfit misfits", "reduced chi-square; why infeasible"),
    Retired("room rooms", "workspace", "projection kernels"),
    Retired("together meet meets", "barrier, wait", "projection/genetic kernels"),
    Retired("draws", "random number generator, stream"),
    # Running
    Retired("callback callbacks", "progress"),
    Retired("tell tells told telling", "progress", REPORTING),
    Retired("terms picky =at_once", "plan, step", f"{FITTING} cli"),
    Retired("limited", "plan, step", f"projection {FITTING} cli"),
    Retired("=split", "selection_fraction", f"{FITTING} cli"),
    Retired("go_on gone_on going_on goes_on", "resume"),
)
# Of these, the ones that are ordinary English in a heading.
ORDINARY = {"asked", "keep", "kept", "free", "outside", "plan"}
# Headings are English, where these say the retired things.
RETIRED_HEADINGS = (
    Retired("sees_a_release holds_the_data", "release report; evaluation report (confidential)"),
    Retired("leaves_the_house", "published"),
)

# Where a retired word is right after all: (file, identifier), with the reason.
ALLOWED: dict[tuple[str, str], str] = {
    ("kernels/conjunctions.py", "meets"): "a row meets a conjunction",
    ("mechanisms/adaptive.py", "groups"): "the groups that were selected",
    ("data/datasets.py", "people"): "how many people have a job, in the simulated census",
}
# In which a word is right wherever it stands.
RIGHT = re.compile(r"chow_liu_forests?|log_lifts")


def words_of(name: str) -> list[str]:
    """The words of an identifier, a file's name, an option or a heading."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]


def holds(name: str, word: str) -> bool:
    """Whether a retired word is among the words of a name."""
    joined = "_".join(words_of(name))
    if word.startswith("="):
        return joined == word[1:]
    return f"_{word}_" in f"_{RIGHT.sub('', joined)}_"


def within(file: str, where: str) -> bool:
    """Whether a file of the package is one of these, or in one of these folders."""
    return not where or any(
        file == place or file.startswith(f"{place}/") for place in where.split()
    )


def advice(name: str, file: str) -> str:
    """What to say instead of a retired word in a name, and nothing where there is none."""
    if (file, name) in ALLOWED:
        return ""
    for retired in RETIRED:
        if within(file, retired.where) and any(holds(name, word) for word in retired.words.split()):
            return retired.say
    return ""


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def file_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def identifiers(tree: ast.AST) -> Iterator[str]:
    """All names that a module gives: what it only uses has its name elsewhere."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
            case ast.alias(asname=str(name)):
                yield name
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                yield name
            case ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                yield name


def test_the_pipeline_is_seen_at_once() -> None:
    entries = [each.name for each in PACKAGE.iterdir() if each.name != "__pycache__"]
    assert len(entries) <= MOST_ENTRIES, sorted(entries)


def test_no_two_modules_share_a_name() -> None:
    """Kernels and commands mirror modules on purpose; a package may have a main module."""
    places: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path in SOURCES:
        file = file_of(path)
        station = file.partition("/")[0]
        mirror = station if station in {"kernels", "cli"} else ""
        if path.stem not in {"__init__", "__main__"}:
            places[mirror, path.stem].append(file)
    shared = {" ".join(files) for files in places.values() if len(files) > 1}
    assert not shared


def mirrors(files: list[str]) -> int:
    """How many of the files are kernels that mirror another one of them."""
    kernels = {Path(file).stem for file in files if within(file, "kernels")}
    return len(kernels & {Path(file).stem for file in files if not within(file, "kernels")})


def test_no_two_public_classes_share_a_name() -> None:
    """But the classes of a kernel and of the module that it mirrors."""
    places: dict[str, list[str]] = defaultdict(list)
    for path in SOURCES:
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(file_of(path))
    shared = {
        f"{name}: {' '.join(files)}"
        for name, files in places.items()
        if len(files) - mirrors(files) > 1
    }
    assert not shared


def test_long_files_say_why() -> None:
    long = set()
    for path in SOURCES:
        lines = path.read_text().splitlines()
        if len(lines) > MOST_LINES and not REASON.search("\n".join(lines[:REASON_WITHIN])):
            long.add(file_of(path))
    assert not long


def test_identifiers_have_no_retired_words() -> None:
    found: dict[str, set[str]] = defaultdict(set)
    for path in SOURCES:
        file = file_of(path)
        for name in {*identifiers(tree_of(path)), path.stem}:
            if advice(name, file):
                found[file].add(name)
    assert not found


def test_folders_have_no_retired_words() -> None:
    folders = [path.parent for path in SOURCES if path.name == "__init__.py"][1:]
    assert not [each for each in folders if advice(each.name, file_of(each))]


def test_options_have_no_retired_words() -> None:
    """Those that are written out; the others are named by parameters of functions."""
    found = set()
    for path in (PACKAGE / "cli").rglob("*.py"):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                for option in re.findall(r"(?<![\w-])--([a-z][a-z-]+)", node.value):
                    if advice(option, file_of(path)):
                        found.add(f"--{option}")
    assert not found


def test_headings_have_no_retired_words() -> None:
    found = set()
    for page in PAGES:
        body = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        for heading in re.findall(r"^#+ (.*)$", body, re.MULTILINE):
            for retired in RETIRED + RETIRED_HEADINGS:
                if any(holds(heading, word) for word in set(retired.words.split()) - ORDINARY):
                    found.add(f"{page.name}: {heading}")
    assert not found


def test_conversions_have_the_names_of_their_theories() -> None:
    assert set(get_args(Conversion)) == {"zcdp", "gdp", "paper"}


def test_what_is_allowed_is_there() -> None:
    for file, name in ALLOWED:
        assert name in identifiers(tree_of(PACKAGE / file)), f"{file} has no {name}: take it out"


def families() -> set[str]:
    """The classes of families, by their names."""
    modules = [
        importlib.import_module(f"{workloads.__name__}.{each.name}")
        for each in pkgutil.iter_modules(workloads.__path__)
    ]
    classes = {
        each for module in modules for _, each in inspect.getmembers(module, inspect.isclass)
    }
    return {each.__name__ for each in classes if issubclass(each, workloads.Family)}


def test_nobody_outside_asks_for_a_family() -> None:
    """Families own their behaviour: others call them, and do not look at their class."""
    names = families()
    assert {"Family", "Marginals", "Halfspaces", "Functions"} <= names
    found = set()
    for path in SOURCES:
        if within(file_of(path), "workloads"):
            continue
        for node in ast.walk(tree_of(path)):
            match node:
                case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[first, second]):
                    used = {each.id for each in ast.walk(second) if isinstance(each, ast.Name)}
                    by_name = isinstance(first, ast.Name) and first.id == "family"
                    looks = bool(used & names) or by_name
                case ast.MatchClass(cls=ast.Name(id=name)):
                    looks = name in names
                case ast.Compare(
                    left=ast.Call(func=ast.Name(id="type")), comparators=[ast.Name(id=name)]
                ):
                    looks = name in names
                case _:
                    looks = False
            if looks:
                found.add(file_of(path))
    assert not found


def patched(tree: ast.AST) -> Iterator[str]:
    """The names that a test replaces, by ``setattr`` or ``mock.patch``."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="setattr" | "object"), args=[_, name, *_]):
                pass
            case ast.Call(func=ast.Attribute(attr="setattr" | "patch"), args=[name, *_]):
                pass
            case _:
                continue
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            yield name.value.rpartition(".")[2]


def test_no_test_patches_a_private_name() -> None:
    """What must be replaced has a public name, or is given as an argument."""
    found = {
        f"{path.relative_to(TESTS).as_posix()}: {name}"
        for path in TESTS.rglob("*.py")
        for name in patched(tree_of(path))
        if name.startswith("_") and not name.endswith("__")
    }
    assert not found


def test_the_manual_uses_the_flat_api() -> None:
    """Whatever a page takes from the package is one of the names that users type."""
    public = set(private_gsd.__all__)
    found: dict[str, set[str]] = defaultdict(set)
    for page in MANUAL:
        text = page.read_text()
        used = set(re.findall(r"(?<![\w./-])(?:private_)?gsd\.(?!whl|zip)([A-Za-z]\w*)", text))
        for line in re.findall(r"from private_gsd import ([^\n]+)", text):
            used |= {name.split(" as ")[0].strip() for name in line.strip("()").split(",")}
        found[page.name] = used - public
    assert not {page: names for page, names in found.items() if names}


def test_completion_shows_what_users_type() -> None:
    assert dir(private_gsd) == private_gsd.__all__


@pytest.mark.parametrize("name", private_gsd.__all__)
def test_public_names_lead_somewhere(name: str) -> None:
    assert getattr(private_gsd, name) is not None


def test_type_checkers_see_the_same_names() -> None:
    """What is imported for them alone is what the tables say."""
    checked: dict[str, str] = {}
    for node in tree_of(PACKAGE / "__init__.py").body:
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING"), body=imports):
                for each in imports:
                    assert isinstance(each, ast.ImportFrom)
                    for alias in each.names:
                        assert alias.asname == alias.name, "for users: import it as itself"
                        checked[alias.name] = str(each.module)
    modules = {
        name: f"private_gsd.{path}".rpartition(".")[0]
        for name, path in private_gsd._MODULES.items()
    }
    names = {name: f"private_gsd.{module}" for name, module in private_gsd._NAMES.items()}
    assert checked == {**modules, **names}
