"""The rule of the house on systems: three modules alone ask which one they run on.

The rest of the package uses nothing that only some systems have, and opens no text in the system's
own encoding or with the system's own line ends.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent.parent / "src" / "private_gsd"
SOURCES = sorted(PACKAGE.rglob("*.py"))
# The memory of a control group of Linux is read in ``memory``.
ABOUT_SYSTEMS = {
    *("system/operating_system.py", "system/file_systems.py", "system/folder_locks.py"),
    "system/memory.py",
}
MODULES = {
    *("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog", "posix"),
    *("msvcrt", "winreg", "_winapi", "nt", "ctypes", "multiprocessing"),
}
# Of ``os``, what every system has and treats alike.
OS = {
    *("PathLike", "environ", "fsencode", "fsdecode", "fspath", "getpid", "path", "devnull"),
    *("fdopen", "fstat", "dup2", "cpu_count", "stat_result"),
}
SIGNAL = {"SIGINT", "SIG_DFL", "SIG_IGN", "signal", "getsignal", "default_int_handler"}
# Of ``sys`` and ``platform``.
WHICH = {"platform", "getwindowsversion", "system", "machine", "uname", "release", "win32_ver"}
# Methods of paths that systems treat differently, and functions that are unsafe on some.
PATHS = {
    *("rename", "chmod", "lchmod", "hardlink_to", "link_to", "is_mount"),
    *("NamedTemporaryFile", "mktemp", "is_symlink", "symlink_to", "readlink"),
}
LETTERS = ("/proc/", "/dev/", "/sys/", "/etc/", "/tmp")


def faults(tree: ast.AST) -> Iterator[str]:
    """What a module uses that depends on the system."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (each.name for each in names if each.name.split(".")[0] in MODULES)
            case ast.ImportFrom(module=str(module)) if module.split(".")[0] in MODULES:
                yield module
            case ast.ImportFrom(module="os" | "signal" | "sys"):
                yield f"from {node.module} import"
            case ast.Attribute(value=ast.Name(id="os"), attr=name) if name not in OS:
                yield f"os.{name}"
            case ast.Attribute(value=ast.Name(id="signal"), attr=name) if name not in SIGNAL:
                yield f"signal.{name}"
            case ast.Attribute(value=ast.Name(id="sys" | "platform"), attr=name) if name in WHICH:
                yield f"sys.{name}"
            case ast.Attribute(attr=name) if name in PATHS:
                yield name
            case ast.Constant(value=str(text)) if text.startswith(LETTERS):
                yield text
            case ast.Call():
                yield from call_faults(node)


def call_faults(call: ast.Call) -> Iterator[str]:
    """What a call opens or renames otherwise than on another system."""
    given = {each.arg for each in call.keywords}
    match call.func:
        case ast.Attribute(attr="read_text") if "encoding" not in given:
            yield "read_text without an encoding"
        case ast.Attribute(attr="write_text") if not (
            given >= {"encoding", "newline"} or len(call.args) > 1
        ):
            yield "write_text without an encoding or a newline"
        case ast.Attribute(attr="open") | ast.Name(id="open") | ast.Attribute(attr="fdopen"):
            words = [each.value for each in call.args if isinstance(each, ast.Constant)]
            binary = any(isinstance(word, str) and "b" in word for word in words)
            if not binary and not {"encoding", "newline"} <= given:
                yield "text opened without an encoding or a newline"
        case ast.Attribute(attr="replace") if len(call.args) == 1 and not given:
            yield "a path is replaced: system.file_systems.replace"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_a_module_is_the_same_on_every_system(path: Path) -> None:
    file = path.relative_to(PACKAGE).as_posix()
    found = list(faults(ast.parse(path.read_text(encoding="utf-8"))))
    assert file in ABOUT_SYSTEMS or not found


def test_what_the_rule_finds() -> None:
    for text in (
        "import fcntl",
        "from resource import getrlimit",
        "os.sched_getaffinity(0)",
        "os.open(path, os.O_RDONLY)",
        "signal.SIGHUP",
        "sys.platform == 'linux'",
        "path.replace(other)",
        "path.rename(other)",
        "path.read_text()",
        "path.write_text(text, encoding='utf-8')",
        "open(path)",
        "path.open('w', encoding='utf-8')",
        "tempfile.NamedTemporaryFile()",
        "Path('/proc/self/status')",
    ):
        assert list(faults(ast.parse(text))), text
    for text in (
        "text.replace('a', 'b')",
        "moment.replace(tzinfo=None)",
        "os.getpid()",
        "path.open('rb')",
        "path.read_text(encoding='utf-8')",
    ):
        assert not list(faults(ast.parse(text))), text
