"""``calibrant recalibrate``: fit a calibrator, and recalibrate the probabilities of a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from calibrant.cli import options
from calibrant.cli.messages import say, write_json
from calibrant.cli.options import Request, check_out, option, reads
from calibrant.errors import CalibrantError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from calibrant.recalibration import Recalibration

Method = Annotated[
    list[str] | None,
    option(
        "--method",
        "A method to try; may be repeated: ends, shift, temperature, platt, beta, quadratic, "
        "isotonic, residual, histogram, scaling_binning, smooth, smooth_monotone, density, "
        "density_monotone, noisy, vector, matrix. By default several of them.",
        "NAME",
    ),
]
Folds = Annotated[int, option("--folds", "Number of cross-validation folds.", "N", default=True)]
Score = Annotated[str, option("--score", "The proper score to improve.", "brier|log", default=True)]
Save = Annotated[str | None, option("--save", "Save the fitted calibrator: *.json.", "PATH")]
Using = Annotated[str | None, option("--using", "Fit nothing, apply a saved calibrator.", "PATH")]
Out = Annotated[
    str | None,
    option("--out", "Write the table with recalibrated probabilities: *.csv or *.parquet.", "PATH"),
]
Report = Annotated[
    str | None,
    option("--report", "Write a report of calibration before and after: *.html.", "PATH"),
]
Prob = Annotated[
    list[str],
    option("--prob", "Probabilities of one model: COLUMN, or NAME=COLUMN."),
]
_NO_SKETCH = "a sketch has no rows to recalibrate: give the rows"


@reads(options.Tables, without=["by", "clusters", "multiclass"], hints={"probs": Prob})
def recalibrate(
    request: Request,
    method: Method = None,
    folds: Folds = 5,
    score: Score = "brier",
    level: options.Level = 0.95,
    resamples: options.Resamples = 1000,
    seed: options.Seed = 0,
    save: Save = None,
    using: Using = None,
    out: Out = None,
    report: Report = None,
    json: options.Json = False,
) -> None:
    r"""Recalibrate probabilities, if that improves them.

    Where no test finds miscalibration, probabilities stay as they are. Otherwise the simplest
    method whose score on held-out rows is close to the best is fitted to all rows, and mixed with
    the probabilities as given in proportion to the evidence. A saved
    calibrator applies to other tables, which need no outcomes. Rows that --on-invalid drop leaves
    out of the fit are still in the table of --out, with an empty field in the new column.

    \b
    calibrant recalibrate forecasts.csv --label rain --prob p --save rain.json --report rain.html
    calibrant recalibrate new.csv --using rain.json --prob p --out recalibrated.csv
    """
    from calibrant._base import HTML_ENDINGS
    from calibrant.cli.screen import show
    from calibrant.cli.tables import open_table
    from calibrant.progress import shown
    from calibrant.recalibration import recalibrate as fit

    files = request.files
    target = None if out is None else check_out(out, (".csv", ".parquet"), files)
    keep = None if save is None else check_out(save, (".json",), files, "--save")
    page = None if report is None else check_out(report, HTML_ENDINGS, files, "--report")
    if len(request.probs) > 1:
        raise CalibrantError(
            "recalibrate takes one --prob; --classes names the columns of one model's classes"
        )
    if using is not None:
        _apply(using, request, method, target, keep or page)
        return
    asked: dict[str, Any] = {"method": method or "auto", "cv": folds, "score": score}
    asked |= {"level": level, "n_resamples": resamples, "rng": seed}
    with open_table(request, _NO_SKETCH) as table:
        if target is not None:
            table.extended(table.columns.probs)  # refused before anything is fitted
        (data,) = table.models().values()
        with shown("fitting"):
            found = data.call(fit, **asked)
        if json:
            write_json(found.to_dict())
        else:
            show(*_parts(found))
        _write_files(found, request, page, keep)
        if target is not None:
            table.write_recalibrated(table.columns.probs, found.calibrator.predict, target)
        elif keep is page is None and found.helps and not json:
            say("nothing was written: --save keeps the calibrator, --out writes the table")


def _write_files(
    found: Recalibration, request: Request, page: Path | None, keep: Path | None
) -> None:
    """Write the report and the calibrator, where they are asked for."""
    if page is not None:
        found.to_html(page, source=request.source())
        say(f"wrote {page}")
    if keep is not None:
        found.calibrator.save(keep)
        say(f"wrote {keep}")


def _apply(
    using: str,
    request: Request,
    method: list[str] | None,
    target: Path | None,
    keep: Path | None,
) -> None:
    """Recalibrate a table by a saved calibrator."""
    from calibrant.cli.tables import open_table
    from calibrant.recalibration import load

    if target is None:
        raise CalibrantError("--using needs --out, the table to write")
    if keep is not None:
        raise CalibrantError("--using fits nothing, so there is nothing to --save or --report")
    of_fit = {
        "--label": request.label,
        "--weight": request.weight,
        "--pos-label": request.pos_label,
        "--method": method,
    }
    unused = [name for name, value in of_fit.items() if value]
    if unused:
        raise CalibrantError(f"--using fits nothing: leave out {', '.join(unused)}")
    given = request.probs or request.classes
    if not given:
        raise CalibrantError("--using needs --prob, the column to recalibrate, or --classes")
    calibrator = load(using)
    with open_table(request, _NO_SKETCH) as table:
        table.write_recalibrated(given, calibrator.predict, target)


def _parts(found: Recalibration) -> list[RenderableType]:
    """Return a recalibration as parts to show: a sentence, and the scores of all methods."""
    from rich.text import Text

    from calibrant.cli.screen import fitted, tables_of

    sentence, _, _ = repr(found).partition("\n")
    (table,) = tables_of(found)
    bold = [name == found.method for name in table.columns["method"]]
    numbers = fitted(table, spare=["strength", "error", "P"], bold=bold)
    return [Text(sentence, style="bold"), "", *numbers]
