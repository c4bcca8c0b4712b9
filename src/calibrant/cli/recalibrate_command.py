"""``calibrant recalibrate``: fit a calibrator, and recalibrate the probabilities of a table.

Probabilities are read, checked and recalibrated in memory. All other columns pass from file to
file, those of text files as they are written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from calibrant._base import AnyArray, draft_of
from calibrant.cli import options
from calibrant.cli.inputs import Request, check_out, expanded
from calibrant.cli.messages import say, write_json
from calibrant.cli.options import option
from calibrant.cli.tables import Table, open_table
from calibrant.errors import CalibrantError
from calibrant.io.columns import Columns, quoted
from calibrant.io.files import Reader, read_rows
from calibrant.io.formats import FORMATS, format_of
from calibrant.recalibration import Calibrator, ProbabilityMap

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation
    from rich.console import RenderableType

    from calibrant.recalibration import Recalibration

_ADDED = "calibrant_recalibrated"


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
        option(
            "--method",
            "A method to try; may be repeated: temperature, platt, beta, isotonic, histogram, "
            "scaling_binning, smooth, smooth_monotone, density, density_monotone, noisy. By "
            "default all that preserve the order of predictions.",
            "NAME",
        ),
    ] = None,
    folds: Annotated[int, typer.Option("--folds", help="Number of cross-validation folds.")] = 5,
    score: Annotated[
        str, option("--score", "The proper score to improve.", "brier|log", default=True)
    ] = "brier",
    level: options.Level = 0.95,
    resamples: options.Resamples = 1000,
    seed: options.Seed = 0,
    save: Annotated[
        str | None, option("--save", "Save the fitted calibrator: *.json.", "PATH")
    ] = None,
    using: Annotated[
        str | None, option("--using", "Fit nothing, apply a saved calibrator.", "PATH")
    ] = None,
    out: Annotated[
        str | None,
        option(
            "--out", "Write the table with recalibrated probabilities: *.csv or *.parquet.", "PATH"
        ),
    ] = None,
    report: Annotated[
        str | None,
        option("--report", "Write a report of calibration before and after: *.html.", "PATH"),
    ] = None,
    json: options.Json = False,
) -> None:
    r"""Recalibrate probabilities, if that improves them.

    Every method is judged by its score on held-out rows. The best of those with a statistically
    significant improvement is kept; where there is none, probabilities stay as they are. A saved
    calibrator applies to other tables, which need no outcomes. Rows that --on-invalid drop leaves
    out of the fit are still in the table of --out, with an empty field in the new column.

    \b
    calibrant recalibrate forecasts.csv --label rain --prob p --save rain.json --report rain.html
    calibrant recalibrate new.csv --using rain.json --prob p --out recalibrated.csv
    """
    target = None if out is None else check_out(out, (".csv", ".parquet"), files)
    keep = None if save is None else check_out(save, (".json",), files, "--save")
    page = None if report is None else check_out(report, (".html", ".htm"), files, "--report")
    request = Request(
        *(files, label, prob or (), weight), pos_label=pos_label, on_invalid=on_invalid, form=form
    )
    if using is not None:
        _check_using(request, target, keep or page)
    asked = {"method": method or "auto", "cv": folds, "score": score}
    asked |= {"level": level, "n_resamples": resamples, "rng": seed}
    with open_table(request, "a sketch has no rows to recalibrate: give the rows") as table:
        if using is not None:
            calibrator, probs = _loaded(using), request.probs
        else:
            found = _fitted(table, asked, json=json)
            calibrator, probs = found.calibrator, table.columns.probs
            if page is not None:
                found.to_html(page, source=request.source())
                say(f"wrote {page}")
        if keep is not None:
            calibrator.save(keep)
            say(f"wrote {keep}")
        if target is not None:
            _write_recalibrated(table, probs, calibrator, target)


def _check_using(request: Request, target: Path | None, keep: Path | None) -> None:
    """Refuse options that contradict --using."""
    if target is None:
        raise CalibrantError("--using needs --out, the table to write")
    if keep is not None:
        raise CalibrantError("--using fits nothing, so there is nothing to --save or --report")
    if not request.probs:
        raise CalibrantError("--using needs --prob: the column to recalibrate, or one per class")


def _loaded(path: str) -> Calibrator | ProbabilityMap:
    from calibrant.recalibration import load

    return load(path)


def _fitted(table: Table, asked: Mapping[str, Any], *, json: bool) -> Recalibration:
    """Fit, show the result and return it."""
    from calibrant.cli.screen import show, waiting
    from calibrant.recalibration import recalibrate

    data = table.whole()
    with waiting("fitting"):
        found = data.call(recalibrate, **asked)
    if json:
        write_json(found.to_dict())
    else:
        show(*_parts(found))
    return found


def _parts(found: Recalibration) -> list[RenderableType]:
    """Return a recalibration as parts to show: a sentence, and the scores of all methods."""
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


# Tables with recalibrated probabilities.


def _write_recalibrated(
    table: Table, given: Sequence[str], calibrator: Calibrator | ProbabilityMap, out: Path
) -> None:
    """Write a table with one more column for each column of probabilities, and report it."""
    reader, paths = table.reader, table.paths
    if len(paths) > 1:
        raise CalibrantError("--out takes one table at a time")
    with reader.errors_in(paths[0]):
        whole = _all_columns(reader, paths[0])
        _, probs = expanded(given, whole.columns, each=True)
        columns = Columns(probs[0], probs)
        columns.check_known(dict.fromkeys(whole.columns))
        made = [f"{prob}_recalibrated" for prob in probs]
        for name in made:
            if name in whole.columns:
                raise CalibrantError(f"there is a column {name!r} already")
    on_invalid = table.request.on_invalid
    rows = read_rows(reader, paths, columns, any_label=True, on_invalid=on_invalid)
    assert rows is not None  # there is no limit
    p = [rows.columns[prob] for prob in probs]
    recalibrated = calibrator.predict(np.column_stack(p) if len(p) > 1 else p[0])
    values = np.full((len(rows.is_valid), len(probs)), np.nan)
    values[rows.is_valid] = recalibrated.reshape(-1, len(probs))
    added = _with_columns(reader.connection, whole, dict(zip(made, values.T, strict=True)))
    _write(added, out, reader, paths[0])
    n_empty = int((~rows.is_valid).sum())
    empty = f", empty in {n_empty} of its rows" * bool(n_empty)
    names = ", ".join(map(repr, made))
    say(f"wrote {out}, with the column{'s' * (len(made) > 1)} {names}{empty}")


def _all_columns(reader: Reader, path: Path) -> DuckDBPyRelation:
    """Return all columns of a file, those of text files as text."""
    if FORMATS[format_of(path)].startswith("JSON"):
        raise CalibrantError("--out takes tables in CSV or Parquet")
    file = reader.file(path)
    if file is None:
        raise CalibrantError("it has no rows")
    return file.rows


def _with_columns(
    connection: DuckDBPyConnection, table: DuckDBPyRelation, columns: dict[str, AnyArray]
) -> DuckDBPyRelation:
    """Return a table with further columns, nan as null; rows keep their order."""
    short = {f"c{i}": np.ascontiguousarray(values) for i, values in enumerate(columns.values())}
    connection.register(_ADDED, short)
    named = [
        f"CASE WHEN NOT isnan(m.{column}) THEN m.{column} END AS {quoted(name)}"
        for column, name in zip(short, columns, strict=True)
    ]
    both = table.query("t", f"SELECT t.*, {', '.join(named)} FROM t POSITIONAL JOIN {_ADDED} AS m")
    assert both is not None  # it is a query
    return both


def _write(table: DuckDBPyRelation, out: Path, reader: Reader, source: Path) -> None:
    """Write a table, whole or not at all."""
    from duckdb import Error

    with draft_of(out) as draft:
        try:
            if out.suffix.lower() == ".csv":
                table.write_csv(str(draft))
            else:
                table.write_parquet(str(draft))
        except Error as problem:
            # Where writing fails, the message of DuckDB names the file, and then the reason.
            reason = re.search(rf'{draft.name}\W*: ([^"\n]+)', str(problem))
            if reason is None:
                with reader.errors_in(source):
                    raise
            raise OSError(f"{out}: {reason[1]}") from problem
