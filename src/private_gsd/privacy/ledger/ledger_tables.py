"""Ledger tables: the SQL that makes a ledger's tables, and the triggers that let them only grow."""

from __future__ import annotations

from private_gsd.privacy.budget import GAUSSIANS, INSECURE

APPLICATION_ID = 0x4753444C  # "GSDL"
VERSION = 7

_GROWS = "BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END"


def _only_grow(table: str, same: str) -> str:
    """Triggers that refuse to change, remove or replace a row."""
    # INSERT OR REPLACE removes rows without running the triggers for DELETE, hence the trigger for
    # INSERT.
    return f"""
CREATE TRIGGER {table}_update BEFORE UPDATE ON {table} {_GROWS};
CREATE TRIGGER {table}_delete BEFORE DELETE ON {table} {_GROWS};
CREATE TRIGGER {table}_replace BEFORE INSERT ON {table}
    WHEN EXISTS (SELECT 1 FROM {table} WHERE {same}) {_GROWS};"""


# The tables and triggers of a ledger without datasets.
CREATE_TABLES = f"""
BEGIN;
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {VERSION};
CREATE TABLE datasets (
    name TEXT PRIMARY KEY NOT NULL CHECK (length(name) > 0),
    units INTEGER NOT NULL CHECK (typeof(units) = 'integer' AND units > 0),
    delta REAL NOT NULL CHECK (delta > 0 AND delta < 1),
    conversion TEXT NOT NULL CHECK (conversion IN ('zcdp', 'paper', 'gdp')),
    neighbours TEXT NOT NULL CHECK (neighbours IN ('replace-one', 'add-remove')),
    unit TEXT CHECK (length(unit) > 0),
    at TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE charges (
    id INTEGER PRIMARY KEY CHECK (id > 0),
    dataset TEXT NOT NULL REFERENCES datasets (name),
    run TEXT NOT NULL,
    at TEXT NOT NULL,
    mechanism TEXT NOT NULL,
    groups TEXT NOT NULL,
    units INTEGER NOT NULL CHECK (typeof(units) = 'integer' AND units > 0)
);
CREATE TABLE reservations (
    run TEXT PRIMARY KEY NOT NULL,
    dataset TEXT NOT NULL REFERENCES datasets (name),
    units INTEGER NOT NULL CHECK (typeof(units) = 'integer' AND units > 0),
    at TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE cancellations (
    run TEXT PRIMARY KEY NOT NULL REFERENCES reservations (run),
    at TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE steps (
    charge INTEGER PRIMARY KEY REFERENCES charges (id),
    run TEXT NOT NULL REFERENCES reservations (run),
    step TEXT NOT NULL,
    UNIQUE (run, step)
);
CREATE TABLE attempts (
    id INTEGER PRIMARY KEY CHECK (id > 0),
    charge INTEGER NOT NULL REFERENCES charges (id),
    attempt TEXT NOT NULL,
    at TEXT NOT NULL
);
CREATE TABLE commits (
    charge INTEGER PRIMARY KEY REFERENCES charges (id),
    digest TEXT NOT NULL,
    at TEXT NOT NULL
);
CREATE TABLE chain (
    id INTEGER PRIMARY KEY CHECK (id > 0),
    entry TEXT NOT NULL,
    digest TEXT NOT NULL
);
{_only_grow("datasets", "name = NEW.name")}
{_only_grow("charges", "id = NEW.id")}
{_only_grow("reservations", "run = NEW.run")}
{_only_grow("cancellations", "run = NEW.run")}
{_only_grow("steps", "charge = NEW.charge OR (run = NEW.run AND step = NEW.step)")}
{_only_grow("attempts", "id = NEW.id")}
{_only_grow("commits", "charge = NEW.charge")}
{_only_grow("chain", "id = NEW.id")}
CREATE TRIGGER charges_total BEFORE INSERT ON charges
    WHEN NEW.units > coalesce((SELECT units FROM datasets WHERE name = NEW.dataset), 0)
        - coalesce((SELECT sum(units) FROM charges WHERE dataset = NEW.dataset), 0)
    BEGIN SELECT RAISE(ABORT, 'over the total'); END;
CREATE TRIGGER charges_gaussian BEFORE INSERT ON charges
    WHEN NEW.mechanism NOT IN {GAUSSIANS}
        AND EXISTS (SELECT 1 FROM datasets WHERE name = NEW.dataset AND conversion = 'gdp')
    BEGIN SELECT RAISE(ABORT, 'not Gaussian'); END;
CREATE TRIGGER charges_seeded BEFORE INSERT ON charges
    WHEN EXISTS (SELECT 1 FROM charges WHERE dataset = NEW.dataset
        AND (instr(mechanism, '{INSECURE}') > 0) <> (instr(NEW.mechanism, '{INSECURE}') > 0))
    BEGIN SELECT RAISE(ABORT, 'seeded noise beside other noise'); END;
COMMIT;
"""
