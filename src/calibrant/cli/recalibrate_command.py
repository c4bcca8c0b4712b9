"""Mending: a table written again with columns of recalibrated probabilities beside the old ones.

The probabilities are read, checked and mended in memory. All other columns pass from file to file,
those of text files uninterpreted: they are written as they were read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import typer

from calibrant._base import AnyArray, draft_of
from calibrant.cli import options
from calibrant.cli.inputs import Request, Wanted, check_out, expanded, is_sketch, local_files
from calibrant.cli.messages import say, write_json
from calibrant.cli.tables import Reading
from calibrant.errors import CalibrantError
from calibrant.io.columns import Columns, inventory, quoted
from calibrant.io.files import Reader, connected
from calibrant.io.formats import FORMATS, format_of
from calibrant.recalibration import Calibrator, ProbabilityMap

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation
    from rich.console import RenderableType

    from calibrant.recalibration import Recalibration

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


# ``calibrant recalibrate``: learn to mend probabilities, and mend those of a file.


def recalibrate(
    files: options.Tables,
    label: options.Label = None,
    prob: options.Prob = None,
    weight: options.Weight = None,
    pos_label: options.PosLabel = None,
    on_invalid: options.OnInvalid = "raise",
    form: options.Form = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            metavar="NAME",
            show_default=False,
            help="What to try; may be repeated. temperature, platt, beta, isotonic, histogram, "
            "scaling_binning, smooth, smooth_monotone, density, density_monotone, noisy. "
            "Without it those that keep the order of predictions.",
        ),
    ] = None,
    folds: Annotated[int, typer.Option("--folds", help="Parts held out in turn.")] = 5,
    score: Annotated[
        str, typer.Option("--score", metavar="brier|log", help="The score that decides.")
    ] = "brier",
    level: options.Level = 0.95,
    resamples: options.Resamples = None,
    seed: options.Seed = 0,
    save: Annotated[
        str | None,
        typer.Option(
            "--save", metavar="PATH", show_default=False, help="Keep what was learnt: *.json."
        ),
    ] = None,
    using: Annotated[
        str | None,
        typer.Option(
            "--using", metavar="PATH", show_default=False, help="Learn nothing, use what was saved."
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            metavar="PATH",
            show_default=False,
            help="Write the table with mended probabilities, too: *.csv or *.parquet.",
        ),
    ] = None,
    report: Annotated[
        str | None,
        typer.Option(
            "--report", metavar="PATH", show_default=False, help="Before and after: *.html."
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    r"""Learn to mend probabilities, if that helps.

    Every method is judged by its score on rows that were held out. The best of those that help
    beyond noise is kept; where none does, probabilities are best left alone. What was saved mends
    the probabilities of other tables, which need no outcomes. Rows that --on-invalid drop leaves
    out are still in the table of --out, with nothing in the new column.

    \b
    calibrant recalibrate forecasts.csv --label rain --prob p --save mend.json --report mend.html
    calibrant recalibrate new.csv --using mend.json --prob p --out mended.csv
    """
    target = None if out is None else check_out(out, ENDINGS, files)
    keep = None if save is None else check_out(save, (".json",), files, "--save")
    page = None if report is None else check_out(report, (".html", ".htm"), files, "--report")
    wanted = Wanted(label, tuple(prob or ()), weight)
    request = Request(tuple(files), wanted, pos_label, None, on_invalid, form)
    if using is not None:
        _check_mends(request, target, keep or page)
        calibrator: Calibrator | ProbabilityMap = _saved(using)
        probs = wanted.probs
    else:
        asked = options.given(level=level, n_resamples=resamples, rng=seed)
        asked |= {"method": method or "auto", "cv": folds, "score": score}
        found, probs = _learnt(request, asked, json=json)
        calibrator = found.calibrator
        if page is not None:
            found.to_html(page, source=request.source())
            say(f"wrote {page}")
    if keep is not None:
        calibrator.save(keep)
        say(f"wrote {keep}")
    if target is not None:
        mended = mend(replace(request, wanted=Wanted(probs=probs)), calibrator, target)
        names = ", ".join(map(repr, mended.columns))
        empty = f", empty in {mended.n_empty} of its rows" * bool(mended.n_empty)
        say(f"wrote {target}, with the column{'s' * (len(mended.columns) > 1)} {names}{empty}")


def _learnt(
    request: Request, asked: Mapping[str, Any], *, json: bool
) -> tuple[Recalibration, tuple[str, ...]]:
    """Learn, show how that went, and return what was learnt and the columns it speaks of."""
    from calibrant.cli.screen import show, waiting
    from calibrant.cli.tables import read
    from calibrant.recalibration import recalibrate

    data = read(request, needs_rows=True)
    if data.columns is None:
        raise CalibrantError("a sketch cannot be divided into parts to hold out: give the rows")
    with waiting("learning"):
        found = data.ask(recalibrate, **asked)
    if json:
        write_json(found.to_dict())
    else:
        show(*_parts(found))
    return found, data.columns.probs


def _saved(path: str) -> Calibrator | ProbabilityMap:
    from calibrant.recalibration import load

    return load(path)


def _check_mends(request: Request, target: Path | None, keep: Path | None) -> None:
    """Refuse what makes no sense where nothing is learnt."""
    if target is None:
        raise CalibrantError("--using needs --out, the table to write")
    if keep is not None:
        raise CalibrantError("--using learns nothing, so there is nothing to --save or --report")
    if not request.wanted.probs:
        raise CalibrantError("--using needs --prob, the column to mend, or one a class")


def _parts(found: Recalibration) -> list[RenderableType]:
    """Return a recalibration as parts to show: a sentence, and how every method did."""
    from rich.text import Text

    from calibrant.cli.screen import Sheet, fitted, p_value

    sentence, _, _ = repr(found).partition("\n")
    # Assessments of several classes have a Brier score, too, of the confidence alone.
    score = f"{found.score}, all classes" if found.held_out.ndim > 1 else f"{found.score} score"
    headings = (score, "gain", "+-", "P adjusted")
    sheet = Sheet("method", headings, spare=("+-", "P adjusted"))
    sheet.add("as given", cells=[f"{found.score_before:.4f}"])
    for one in found.candidates:
        gain = (f"{one.improvement:+.5f}", f"{one.standard_error:.5f}")
        cells = (f"{one.score:.4f}", *gain, p_value(one.p_value))
        sheet.add(one.method, cells=cells, style="bold" * (one.method == found.method))
    return [Text(sentence, style="bold"), "", *fitted(sheet)]
