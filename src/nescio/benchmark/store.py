"""Records of a benchmark in one SQLite file: whole stacks or nothing, and nothing twice.

Only the process that coordinates a run writes. A stack's records are one transaction; whoever is killed leaves the
stacks that were finished and no part of another.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from nescio._validation import InputError
from nescio.benchmark.plan import Task, task_seed
from nescio.benchmark.records import provenance

__all__ = ["Failure", "Measurement", "Record", "Store"]

APPLICATION = 0x6E65_7363  # "nesc"
VERSION = 1
PATIENCE = 60.0  # seconds to wait for another process that writes

SCHEMA = """
CREATE TABLE runs (
    run INTEGER PRIMARY KEY,
    "commit" TEXT NOT NULL, versions TEXT NOT NULL, hardware TEXT NOT NULL, date TEXT NOT NULL,
    UNIQUE ("commit", versions, hardware, date)
);
CREATE TABLE tasks (
    task INTEGER PRIMARY KEY,
    protocol TEXT NOT NULL, dataset TEXT NOT NULL, split TEXT NOT NULL, method TEXT NOT NULL, trial INTEGER NOT NULL,
    seed INTEGER NOT NULL, seconds REAL NOT NULL, run INTEGER NOT NULL REFERENCES runs (run),
    UNIQUE (protocol, dataset, split, method, trial)
);
CREATE TABLE records (
    task INTEGER NOT NULL REFERENCES tasks (task) ON DELETE CASCADE,
    region TEXT NOT NULL, metric TEXT NOT NULL, value REAL,
    PRIMARY KEY (task, region, metric)
) WITHOUT ROWID;
CREATE TABLE failures (
    protocol TEXT NOT NULL, dataset TEXT NOT NULL, split TEXT NOT NULL, method TEXT NOT NULL, trial INTEGER NOT NULL,
    error TEXT NOT NULL, date TEXT NOT NULL,
    PRIMARY KEY (protocol, dataset, split, method, trial)
);
"""
"""A value that is not a number is NULL. The provenance of a record is that of its task."""


class Measurement(NamedTuple):
    """All values of one task, and how long it took."""

    task: Task
    values: Sequence[tuple[str, str, float]]  # region, metric, value
    seconds: float


class Failure(NamedTuple):
    """A task that could not be done, and why."""

    task: Task
    error: str


class Record(NamedTuple):
    """One value with all that made it."""

    protocol: str
    dataset: str
    split: str
    method: str
    trial: int
    region: str
    metric: str
    value: float
    seed: int
    seconds: float
    commit: str
    versions: str
    hardware: str
    date: str


class Store:
    """The records in one file. Use it in a ``with`` block, or close it."""

    def __init__(self, path: Path, *, create: bool = False) -> None:
        self.path = path
        if not create and not path.is_file():
            raise InputError(f"there is no store '{path}'; make one with nescio bench uci --store.")
        with self._faults():
            self._connection = self._open(create)

    def _open(self, create: bool) -> sqlite3.Connection:
        address = self.path.absolute().as_uri()
        connection = sqlite3.connect(f"{address}?mode={'rwc' if create else 'ro'}", uri=True, timeout=PATIENCE)
        try:
            try:
                application, version, tables = self._identity(connection)
            except sqlite3.OperationalError:
                if create or self.path.with_name(self.path.name + "-wal").exists():
                    raise
                connection.close()  # a folder that cannot be written has no room for the shared memory of a reader
                connection = sqlite3.connect(f"{address}?immutable=1", uri=True)
                application, version, tables = self._identity(connection)
            if create and not tables and not application:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.executescript(
                    f"BEGIN IMMEDIATE; {SCHEMA} PRAGMA application_id = {APPLICATION}; "
                    f"PRAGMA user_version = {VERSION}; COMMIT;"
                )
                application, version, _ = self._identity(connection)
            if application != APPLICATION:
                raise InputError(f"'{self.path}' is not a store of benchmark records; give another file.")
            if version > VERSION:
                raise InputError(
                    f"the store '{self.path}' was written by a newer nescio (form {version}, this one reads "
                    f"{VERSION}); update nescio."
                )
            connection.execute("PRAGMA foreign_keys = ON")
        except BaseException:
            connection.close()
            raise
        return connection

    @staticmethod
    def _identity(connection: sqlite3.Connection) -> tuple[int, int, int]:
        ask = lambda sql: int(connection.execute(sql).fetchone()[0])
        return ask("PRAGMA application_id"), ask("PRAGMA user_version"), ask("SELECT count(*) FROM sqlite_master")

    @contextmanager
    def _faults(self) -> Iterator[None]:
        """Tell a file that cannot be a store in one sentence."""
        try:
            yield
        except sqlite3.OperationalError as error:
            raise InputError(f"the store '{self.path}' cannot be used: {error}; see its place and rights.") from error
        except sqlite3.DatabaseError as error:
            raise InputError(
                f"'{self.path}' is not a store of benchmark records or is damaged ({error}); give another file."
            ) from error

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *ending: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the file back."""
        with suppress(sqlite3.Error):
            self._connection.close()

    def done(self) -> set[Task]:
        """Tasks whose records are here."""
        with self._faults():
            return {Task(*row) for row in self._connection.execute(f"SELECT {_KEY} FROM tasks")}

    def failures(self) -> list[Failure]:
        """Tasks that failed when they were last tried, sorted."""
        with self._faults():
            rows = self._connection.execute(f"SELECT {_KEY}, error FROM failures ORDER BY {_KEY}").fetchall()
        return [Failure(Task(*row[:-1]), row[-1]) for row in rows]

    def add(
        self,
        measurements: Iterable[Measurement],
        failures: Iterable[Failure] = (),
        made: Mapping[str, str] | None = None,
    ) -> None:
        """Write a finished stack: all of it, in the place of what an earlier run left of these tasks.

        ``made`` is the provenance that the worker told; None for that of this process.
        """
        facts = provenance() if made is None else made
        with self._faults(), self._connection as connection:
            connection.execute("BEGIN IMMEDIATE")
            identity = (facts["commit"], facts["versions"], facts["hardware"], facts["date"])
            connection.execute(
                'INSERT OR IGNORE INTO runs ("commit", versions, hardware, date) VALUES (?, ?, ?, ?)', identity
            )
            (run,) = connection.execute(
                'SELECT run FROM runs WHERE "commit" = ? AND versions = ? AND hardware = ? AND date = ?', identity
            ).fetchone()
            for measurement in measurements:
                self._forget(measurement.task)
                number = connection.execute(
                    f"INSERT INTO tasks ({_KEY}, seed, seconds, run) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    (*measurement.task, task_seed(measurement.task), measurement.seconds, run),
                ).lastrowid
                connection.executemany(
                    "INSERT INTO records (task, region, metric, value) VALUES (?, ?, ?, ?)",
                    [(number, region, metric, float(value)) for region, metric, value in measurement.values],
                )
            today = datetime.now(UTC).date().isoformat()
            for failure in failures:
                self._forget(failure.task)
                connection.execute(
                    f"INSERT INTO failures ({_KEY}, error, date) VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (*failure.task, failure.error, today),
                )

    def _forget(self, task: Task) -> None:
        for table in ("tasks", "failures"):
            self._connection.execute(f"DELETE FROM {table} WHERE ({_KEY}) = (?, ?, ?, ?, ?)", task)

    def records(self, protocol: str | None = None) -> Iterator[Record]:
        """Every value with its provenance, sorted."""
        where = "" if protocol is None else "WHERE protocol = ?"
        sql = (
            f'SELECT {_KEY}, region, metric, value, seed, seconds, "commit", versions, hardware, date '
            f"FROM records JOIN tasks USING (task) JOIN runs USING (run) {where} ORDER BY {_KEY}, region, metric"
        )
        arguments: tuple[Any, ...] = () if protocol is None else (protocol,)
        with self._faults():
            for row in self._connection.execute(sql, arguments):
                record = Record._make(row)
                yield record if record.value is not None else record._replace(value=math.nan)


_KEY = "protocol, dataset, split, method, trial"
