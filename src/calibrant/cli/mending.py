"""Mending: a table written again with columns of recalibrated probabilities beside the old ones.

The probabilities are read, checked and mended in memory. All other columns pass from file to file,
those of text files uninterpreted: they are written as they were read.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from calibrant.arrays import AnyArray
from calibrant.cli.columns import expanded
from calibrant.cli.files import is_sketch, local_files
from calibrant.cli.request import Request
from calibrant.cli.rows import Reading
from calibrant.errors import CalibrantError
from calibrant.files import draft_of
from calibrant.recalibration import Calibrator, ProbabilityMap
from calibrant.sources.columns import Columns, inventory, quoted
from calibrant.sources.files import Reader, connected
from calibrant.sources.formats import FORMATS, format_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

ENDINGS = (".csv", ".parquet")
_MENDED = "calibrant_mended"


class Mended(NamedTuple):
    """The columns that were added to a table, and in how many rows they are empty."""

    columns: list[str]
    n_empty: int


def mend(request: Request, calibrator: Calibrator | ProbabilityMap, out: Path) -> Mended:
    """Write a table with mended probabilities, a column for each that is mended, to `out`."""
    if "-" in request.files:
        raise CalibrantError("--out reads its table twice, and a pipe only gives it once")
    with local_files(request) as paths, connected() as reader:
        if len(paths) > 1 or is_sketch(paths[0]):
            raise CalibrantError("--out is for one table at a time, and not for sketches")
        with reader.saying(paths[0]):
            table = _uninterpreted(reader, paths[0])
            probs = _probs(request, table.columns)
            made = [f"{prob}_recalibrated" for prob in probs]
            for name in made:
                if name in table.columns:
                    raise CalibrantError(f"there is a column {name!r} already")
        columns = Columns(probs[0], probs)
        rows = Reading(columns, True, request.on_invalid, None).rows(reader, paths)
        assert rows is not None  # there is no limit
        given = [rows.columns[prob] for prob in probs]
        mended = calibrator.predict(np.column_stack(given) if len(given) > 1 else given[0])
        values = np.full((len(rows.kept), len(probs)), np.nan)
        values[rows.kept] = mended.reshape(-1, len(probs))
        beside = _beside(reader.connection, table, dict(zip(made, values.T, strict=True)))
        _write(beside, out, reader, paths[0])
    return Mended(made, int((~rows.kept).sum()))


def _probs(request: Request, names: list[str]) -> tuple[str, ...]:
    """Return the columns to mend, in the order in which classes were learnt."""
    _, probs = expanded(request.wanted.probs, names, each=True)
    for name in probs:
        if name not in names:
            raise CalibrantError(f"there is no column {name!r}; {inventory(dict.fromkeys(names))}")
    return probs


def _uninterpreted(reader: Reader, path: Path) -> DuckDBPyRelation:
    if FORMATS[format_of(path)].startswith("JSON"):
        raise CalibrantError("--out takes tables in CSV or Parquet")
    file = reader.file(path)
    if file is None:
        raise CalibrantError("it has no rows")
    return file.rows


def _beside(
    connection: DuckDBPyConnection, table: DuckDBPyRelation, columns: dict[str, AnyArray]
) -> DuckDBPyRelation:
    """Return a table with further columns, nan being nothing; rows keep their order."""
    short = {f"c{i}": np.ascontiguousarray(values) for i, values in enumerate(columns.values())}
    connection.register(_MENDED, short)
    named = [
        f"CASE WHEN NOT isnan(m.{column}) THEN m.{column} END AS {quoted(name)}"
        for column, name in zip(short, columns, strict=True)
    ]
    both = table.query("t", f"SELECT t.*, {', '.join(named)} FROM t POSITIONAL JOIN {_MENDED} AS m")
    assert both is not None  # it is a query
    return both


def _write(table: DuckDBPyRelation, out: Path, reader: Reader, source: Path) -> None:
    """Write a table, all of it or nothing."""
    from duckdb import Error

    with draft_of(out) as draft:
        try:
            if out.suffix.lower() == ".csv":
                table.write_csv(str(draft))
            else:
                table.write_parquet(str(draft))
        except Error as problem:
            # Where writing fails, DuckDB names what it writes to, and then the reason.
            reason = re.search(rf'{draft.name}\W*: ([^"\n]+)', str(problem))
            if reason is None:
                with reader.saying(source):
                    raise
            raise OSError(f"{out}: {reason[1]}") from problem
