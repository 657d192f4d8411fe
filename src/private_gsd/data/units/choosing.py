"""Choosing: which rows of each unit are taken, by a secret key.

A row's priority is a keyed hash of its unit's id, its values, and its number among the equal rows
of its unit. Of each unit the rows with the least priorities are taken. So the choice does not
depend on the order of rows, on batches, files or partitions, and a resumed run makes it again.

What the guarantee rests on: for any key, the rows that are taken of a unit follow from the key and
the rows of that unit alone. Tables that differ in one unit thus differ in the rows that are taken
of that unit, at most K in each, and in nothing else. This holds for each key, also for a known one,
as long as the key was drawn without looking at the data. That the hash is pseudorandom, and the key
secret, makes the choice uniform: no row of a unit is more likely to be taken than another.
"""

from __future__ import annotations

import hashlib
import secrets
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from private_gsd.data.units.keyed_hash import KEY_BYTES, hash_rows, hash_texts
from private_gsd.errors import ReleaseError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from private_gsd.schema.unit import Unit

    Matrix = NDArray[np.float64]

SECRET_BYTES = 32


class UnitKey:
    """The secret key of the choice of rows. It is drawn by the operating system.

    Attributes:
        hexadecimal: The key as text, for the run's own confidential file.
    """

    __slots__ = ("_ids", "_ordinals", "_rows", "hexadecimal")

    def __init__(self, hexadecimal: str) -> None:
        try:
            secret = bytes.fromhex(hexadecimal)
        except (TypeError, ValueError):
            secret = b""
        if len(secret) != SECRET_BYTES:
            raise ReleaseError("the key of the choice of rows is damaged")
        self.hexadecimal = hexadecimal
        self._ids, self._rows, self._ordinals = (
            hashlib.blake2b(key=secret, person=use, digest_size=KEY_BYTES).digest()
            for use in (b"ids", b"rows", b"ordinals")
        )

    @classmethod
    def draw(cls) -> UnitKey:
        """A new key."""
        return cls(secrets.token_hex(SECRET_BYTES))

    @classmethod
    def of(cls, unit: Unit | None, insecure_seed: int | None = None) -> UnitKey | None:
        """The key of a new run; None where the unit of protection is a row.

        Args:
            unit: The unit of protection.
            insecure_seed: For tests and experiments: a seed that the key follows from.
        """
        if unit is None or insecure_seed is None:
            return None if unit is None else cls.draw()
        seed = insecure_seed.to_bytes(8, "little")
        return cls(hashlib.blake2b(seed, digest_size=SECRET_BYTES).hexdigest())

    def __repr__(self) -> str:
        return "<UnitKey: redacted>"

    def hash_ids(self, ids: pa.LargeStringArray) -> NDArray[np.uint64]:
        """The hash of each id, none of which is null."""
        return hash_texts(self._ids, ids)

    def hash_rows(self, id_hashes: NDArray[np.uint64], matrix: Matrix) -> NDArray[np.uint64]:
        """The hash of each row: of its unit and its values."""
        columns = chain([id_hashes], _words(matrix))
        return hash_rows(self._rows, columns, len(matrix), 1 + matrix.shape[1])

    def priorities(
        self, hashes: NDArray[np.uint64], ordinals: NDArray[np.int64]
    ) -> NDArray[np.uint64]:
        """The priority of each row, by its hash and its number among equal rows."""
        words = [hashes, ordinals.astype(np.uint64)]
        return hash_rows(self._ordinals, words, len(hashes), len(words))


class Chosen(NamedTuple):
    """The rows that are taken.

    Attributes:
        rows: The places of the rows.
        weights: The weight of each.
        units: The number of units.
    """

    rows: NDArray[np.int64]
    weights: NDArray[np.int64]
    units: int


def choose_rows_of_units(
    ids: pa.LargeStringArray, matrix: Matrix, unit: Unit, key: UnitKey
) -> Chosen:
    """The rows that are taken of units, all of whose rows are here.

    Args:
        ids: The ids of the rows, none of them null.
        matrix: The encoded rows.
        unit: The unit of protection.
        key: The secret key.
    """
    # Ids are compared as they are, not by their hash: no collision joins two units.
    found = ids.dictionary_encode()
    codes = found.indices.to_numpy().astype(np.int64)
    hashes = key.hash_rows(key.hash_ids(found.dictionary)[codes], matrix)
    order = np.lexsort((hashes, codes))
    codes, hashes = codes[order], hashes[order]
    begins = _changes(codes)
    priorities = key.priorities(hashes, _places(begins | _changes(hashes)))
    again = np.lexsort((priorities, codes))  # units stay where they are
    ranks = _places(begins)
    sizes = np.minimum(np.bincount(codes), unit.at_most)
    taken = ranks < unit.at_most
    table = _weights(unit)
    return Chosen(
        order[again[taken]], table[sizes[codes[taken]], ranks[taken]], len(found.dictionary)
    )


@lru_cache(maxsize=8)
def _weights(unit: Unit) -> NDArray[np.int64]:
    """The weight of a row by the number of rows that are taken of its unit, and its rank."""
    table = np.zeros((unit.at_most + 1, unit.at_most), dtype=np.int64)
    for rows in range(1, unit.at_most + 1):
        table[rows, :rows] = unit.weights(rows)
    return table


def _changes(values: NDArray[np.uint64] | NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each value differs from the one before it."""
    changes = np.ones(len(values), dtype=np.bool_)
    changes[1:] = values[1:] != values[:-1]
    return changes


def _places(begins: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The place of each row in its run, from 0, by whether a run begins there."""
    number = np.arange(len(begins))
    return number - np.maximum.accumulate(np.where(begins, number, 0))


def _words(matrix: Matrix) -> Iterator[NDArray[np.uint64]]:
    """The columns as 8-byte words, equal where the values are: of zeros and NaNs there is one."""
    for column in matrix.T:
        yield np.where(np.isnan(column), np.nan, column + 0.0).view(np.uint64)
