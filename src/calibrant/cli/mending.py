"""Mending: a table written again with a column of recalibrated probabilities beside the old ones.

DuckDB reads, mends and writes, so that tables may be larger than memory. The columns of text files
are not interpreted: all but the new one are written as they were read.
"""

from __future__ import annotations

import glob
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from calibrant.cli.files import connected, is_sketch, local_files
from calibrant.cli.request import Request
from calibrant.cli.rows import Reading
from calibrant.cli.wording import plainly
from calibrant.errors import CalibrantError
from calibrant.recalibration import Calibrator, ProbabilityMap
from calibrant.sources.columns import Columns, quoted
from calibrant.sources.files import saying
from calibrant.sources.formats import FORMATS, format_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

ENDINGS = (".csv", ".parquet")
_SCORE = "calibrant: the score as a number"


def mend(request: Request, calibrator: Calibrator | ProbabilityMap, out: Path) -> str:
    """Write a table with a column of mended probabilities to `out`; return that column's name."""
    (prob,) = request.wanted.probs
    columns = Columns(prob, (prob,))
    made = f"{prob}_recalibrated"
    if "-" in request.files:
        raise CalibrantError("--out reads its table twice, and a pipe only gives it once")
    with local_files(request) as paths, connected() as connection:
        if len(paths) > 1 or is_sketch(paths[0]):
            raise CalibrantError("--out is for one table at a time, and not for sketches")
        with plainly(columns):
            # Refuses what is no probability, with its row.
            Reading(columns, any_label=True, drops=False, limit=None).rows(connection, paths)
        with saying(paths[0]):
            table = _uninterpreted(connection, paths[0])
            if made in table.columns:
                raise CalibrantError(f"there is a column {made!r} already")
            score = quoted(_SCORE)
            scored = table.project(f"*, CAST({quoted(prob)} AS DOUBLE) AS {score}")
            mended = f"{calibrator.to_sql(_SCORE)} AS {quoted(made)}"
            _write(scored.project(f"* EXCLUDE ({score}), {mended}"), out)
    return made


def _uninterpreted(connection: DuckDBPyConnection, path: Path) -> DuckDBPyRelation:
    name, form = glob.escape(str(path)), FORMATS[format_of(path)]
    if form == "Parquet":
        return connection.read_parquet(name)
    if form.startswith("JSON"):
        raise CalibrantError("--out takes tables in CSV or Parquet")
    separator = "\t" if form == "TSV" else None
    return connection.read_csv(
        name, header=True, skiprows=0, comment="", all_varchar=True, sep=separator
    )


def _write(table: DuckDBPyRelation, out: Path) -> None:
    """Write a table, all of it or nothing."""
    draft = out.with_name(f".draft-{secrets.token_hex(8)}")
    try:
        if out.suffix.lower() == ".csv":
            table.write_csv(str(draft))
        else:
            table.write_parquet(str(draft))
        draft.replace(out)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
