"""Files of others: within bounds, without links, and a changed bit is noticed."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from private_gsd.system.untrusted_files import (
    load_array,
    load_arrays,
    parse_json,
    read_file,
    seal,
    to_json,
    unseal,
)


def test_only_plain_files_within_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert read_file(path, 5) == b"12345"
    with pytest.raises(ValueError, match="more than the 4 bytes"):
        read_file(path, 4)
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(ValueError, match="symbolic link"):
        read_file(tmp_path / "link", 5)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="not a plain file"):
        read_file(tmp_path / "pipe", 5)
    with pytest.raises(FileNotFoundError):
        read_file(tmp_path / "nothing", 5)


def test_json_within_bounds() -> None:
    assert parse_json(b'{"a": [1, 2.5, "\xc3\xa9"]}') == {"a": [1, 2.5, "é"]}
    for bad in (b"[" * 100_000, b"9" * 50, b"{", b"\xff"):
        with pytest.raises(ValueError, match=r".+"):
            parse_json(bad)
    assert to_json({"name": "\udcff"}) == b'{\n "name": "\\udcff"\n}'


def test_every_changed_bit_of_a_sealed_document_is_noticed() -> None:
    document = {"a": 1, "b": ["x", None], "c": 0.1}
    sealed = seal(document)
    assert unseal(sealed) == document
    for place in range(len(sealed)):
        for bit in range(8):
            torn = bytearray(sealed)
            torn[place] ^= 1 << bit
            with pytest.raises(ValueError, match=r".+"):
                unseal(bytes(torn))
    with pytest.raises(ValueError, match="not what belongs there"):
        unseal(b"[]")


def npz(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def test_arrays_come_back_as_they_were() -> None:
    arrays = {"a": np.arange(6.0).reshape(2, 3), "b1": np.asfortranarray(np.eye(3, dtype=np.int16))}
    found = load_arrays(npz(**arrays), r"a|b\d")
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype
        assert found[name].flags.writeable


def test_arrays_that_are_none_of_ours() -> None:
    squeezed = io.BytesIO()
    np.savez_compressed(squeezed, a=np.zeros(9))
    for content in (
        b"",
        b"x" * 100,
        npz(other=np.zeros(3)),
        npz(a=np.array([{"an": "object"}], dtype=object)),
        npz(a=np.array(["text"])),
        squeezed.getvalue(),
        npz(a=np.zeros(3))[:-5],
    ):
        with pytest.raises(ValueError, match=r".+"):
            load_arrays(content, "a")
    file = io.BytesIO()
    np.save(file, np.zeros(3))
    assert load_array(file.getvalue()).tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="another size"):
        load_array(file.getvalue() + b"x")
