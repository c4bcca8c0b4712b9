"""``calibrant report``: a page of HTML that needs nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibrant.cli import options
from calibrant.cli.messages import say
from calibrant.cli.outputs import check_out
from calibrant.cli.request import Request, Wanted
from calibrant.errors import CalibrantError

if TYPE_CHECKING:
    from calibrant.cli.tables import Data
    from calibrant.inference.compare_result import Comparison


def report(
    files: options.Files,
    out: Annotated[
        str,
        typer.Option(
            "--out", metavar="PATH", show_default=False, help="Where to write it: *.html."
        ),
    ],
    label: options.Label = None,
    prob: options.ProbOfModels = None,
    weight: options.Weight = None,
    by: options.By = None,
    multiclass: options.Multiclass = None,
    pos_label: options.PosLabel = None,
    on_invalid: options.OnInvalid = "raise",
    form: options.Form = None,
    level: options.Level = 0.95,
    bins: options.Bins = 15,
    resamples: options.Resamples = None,
    seed: options.Seed = 0,
    title: Annotated[str, typer.Option("--title", help="Its heading.")] = "Calibration report",
) -> None:
    r"""Write a page that shows all of it, to open in a browser.

    Verdicts, interactive diagrams and tables in one file, which needs no network. Several columns
    of probabilities are several models, unless --multiclass or the labels say that they are
    classes.

    \b
    calibrant report forecasts.csv --label rain --prob p --out rain.html
    calibrant report flares.csv --label flare --prob NOAA --prob SIDC --out flares.html
    """
    from calibrant.assessment.assess import assess
    from calibrant.assessment.groups import by_group
    from calibrant.cli.tables import read_each
    from calibrant.cli.terminal import waiting
    from calibrant.report.page import write_page

    path = check_out(out, (".html", ".htm"), files)
    wanted = Wanted(label, tuple(prob or ()), weight, by)
    request = Request(
        tuple(files), wanted, pos_label, multiclass, on_invalid, form, each=multiclass is None
    )
    asked = options.given(level=level, n_bins=bins, n_resamples=resamples, rng=seed)
    # The whole and its groups are both shown, which sketches by group do not know.
    models = read_each(request, needs_rows=by is not None)
    first = next(iter(models.values()))
    if by is not None and len(models) > 1:
        names = ", ".join(map(repr, models))
        raise CalibrantError(f"--by takes one --prob; got {names:.100}")
    with waiting("measuring"):
        found = {name: data.ask(assess, **asked) for name, data in models.items()}
        groups = None if by is None else first.ask(by_group, groups=first.groups, **asked)
        shown = found if len(found) > 1 else next(iter(found.values()))
        write_page(
            *(path, shown),
            title=title,
            source=request.source(),
            groups=groups,
            comparison=_comparison(models, level=level, rng=seed),
        )
    say(f"wrote {path}")


def _comparison(models: dict[str, Data], **asked: Any) -> Comparison | None:
    """Return how models differ on the rows they share, if there are several and they have rows."""
    from calibrant.cli.compare import side_by_side
    from calibrant.inference.compare import compare

    if len(models) < 2 or any(len(data.pair) == 1 for data in models.values()):
        return None
    found: Comparison = side_by_side(models).ask(compare, **asked)
    return found
