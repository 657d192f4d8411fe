"""Files that may be damaged or forged: read with limits on their size, never through links.

The functions raise ``ValueError`` or ``OSError`` only. Callers add the name of the file.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import struct
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np

from private_gsd.system.file_systems import open_to_read

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from numpy.typing import NDArray

# The largest document and the largest file of arrays. Arrays are not compressed, so that reading
# them takes as much memory as the file has bytes; JSON may take twenty times as much.
MAX_DOCUMENT = 2**28
MAX_ARRAYS = 2**32 - 1
# JSON allows whole numbers of any length; those of our documents fit into 64 bits.
MAX_DIGITS = 40
# Versions of Python differ in how deep they parse JSON: some of them deeper than they can write it.
MAX_DEPTH = 100
# Enough for the names of about ten thousand arrays.
MAX_DIRECTORY = 2**20


def read_file(path: Path, limit: int) -> bytes:
    """The content of a plain file; a link, a pipe or a larger file is refused.

    Args:
        path: The file. Its folder may be a link; the file must not be one.
        limit: The largest number of bytes that the file may have.
    """
    with os.fdopen(open_to_read(path, follow=False), "rb") as file:
        about = os.fstat(file.fileno())
        if about.st_size > limit:
            raise ValueError(f"has more than the {limit:,} bytes allowed")
        content = file.read(about.st_size + 1)  # not more than the checked size
    if len(content) != about.st_size:
        raise ValueError("changed while it was read")
    return content


def parse_json(content: bytes | str) -> Any:
    """A JSON document."""
    try:
        text = content if isinstance(content, str) else content.decode()
        document = json.loads(text, parse_int=_whole)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    level, depth = [document], 0
    while level := [each for part in level for each in _parts(part)]:
        depth += 1
        if depth > MAX_DEPTH:
            raise ValueError("nested too deeply")
    return document


def _parts(document: Any) -> Iterable[Any]:
    """What a list or an object contains."""
    if isinstance(document, dict):
        return document.values()
    return document if isinstance(document, list) else ()


def to_json(document: Any) -> bytes:
    """A document as JSON in UTF-8; equal documents give equal bytes.

    File names that are not UTF-8 contain lone surrogates, which JSON can escape.
    """
    return json.dumps(document, indent=1, ensure_ascii=False).encode("utf-8", "backslashreplace")


def seal(document: dict[str, Any]) -> bytes:
    """A document with its own checksum, as JSON. The checksum reveals damage, not forgery."""
    rest = {key: value for key, value in document.items() if key != "sha256"}
    return to_json({**rest, "sha256": hashlib.sha256(to_json(rest)).hexdigest()})


def unseal(content: bytes) -> dict[str, Any]:
    """The document that ``seal`` wrote; damaged content is refused."""
    document = parse_json(content)
    if not isinstance(document, dict):
        raise ValueError("is not what belongs there")
    try:
        same = seal(document) == content
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not same:
        raise ValueError("was changed or is torn: its checksum is wrong")
    del document["sha256"]
    return document


def load_arrays(content: bytes, names: str) -> dict[str, NDArray[Any]]:
    """The arrays of an .npz file as ``numpy.savez`` writes it, without compression.

    Args:
        content: The file.
        names: A regular expression for the names that are allowed.
    """
    try:
        # The last 22 bytes state the size of the directory; no comment follows them.
        mark, directory = struct.unpack("<4s8xL6x", content[-22:])
        if mark != b"PK\x05\x06" or directory > MAX_DIRECTORY:
            raise ValueError("not an .npz file as numpy.savez writes it")
        arrays: dict[str, NDArray[Any]] = {}
        with zipfile.ZipFile(io.BytesIO(content)) as file:
            members = file.infolist()
            if sum(member.file_size for member in members) > len(content):
                raise ValueError("arrays that are larger than their file")
            for member in members:
                name = member.filename.removesuffix(".npy")
                if name in arrays or not re.fullmatch(names, name):
                    raise ValueError(f"an unexpected array {name!r:.50}")
                stored = member.compress_type == zipfile.ZIP_STORED
                if not stored or member.file_size != member.compress_size:
                    raise ValueError(f"array {name!r} is compressed")
                arrays[name] = load_array(file.read(member))
    except ValueError:
        raise
    except Exception as error:  # any exception of a parser on forged bytes
        raise ValueError(f"not an .npz file: {error}") from None
    return arrays


def load_array(content: bytes) -> NDArray[Any]:
    """The array of an .npy file; refused unless it holds numbers and has the stated size."""
    try:
        file = io.BytesIO(content)
        version = np.lib.format.read_magic(file)
        if version == (1, 0):
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
        elif version == (2, 0):
            shape, fortran, dtype = np.lib.format.read_array_header_2_0(file)
        else:
            raise ValueError(f"an .npy file of version {version}")
        start = file.tell()
        if dtype.kind not in "biuf" or math.prod(shape) * dtype.itemsize != len(content) - start:
            raise ValueError("an array of another size than its file")
        values: NDArray[Any] = np.frombuffer(content, dtype, offset=start)
        return values.reshape(shape, order="F" if fortran else "C").copy("K")
    except ValueError:
        raise
    except Exception as error:  # as above
        raise ValueError(f"not an .npy file: {error}") from None


def _whole(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"a whole number of {len(digits):,} digits")
    return int(digits)
