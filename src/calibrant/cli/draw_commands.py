"""``calibrant plot``, ``report`` and ``demo``."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibrant.cli import options
from calibrant.cli.messages import say
from calibrant.cli.options import Request, check_out, option, reads
from calibrant.errors import CalibrantError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from calibrant.cli.tables import Data

PictureOut = Annotated[
    str,
    option("--out", "The file to write, in the format of its ending: .png, .svg or .pdf.", "PATH"),
]
Kind = Annotated[
    str | None,
    option(
        "--kind",
        "reliability (the default); cumulative; bins, the binned error by number of bins; or "
        "assessment, all diagrams.",
        "KIND",
    ),
]
Along = Annotated[
    str | None,
    option("--along", "Instead of --kind: mean outcome minus mean prediction along a feature."),
]
Resamples = Annotated[
    int | None,
    option(
        "--resamples",
        "Number of bootstrap resamples, at least 39.",
        "N",
        default="1000, and 9999 for cumulative",
    ),
]
Dpi = Annotated[
    int, typer.Option("--dpi", callback=options.between("--dpi", 10, 2400), help="Dots per inch.")
]
PageOut = Annotated[str, option("--out", "The file to write: *.html.", "PATH")]
DemoOut = Annotated[
    str | None, option("--out", "Write a report on forecasts of solar flares, too: *.html.", "PATH")
]
Title = Annotated[str, typer.Option("--title", help="The heading of the page.")]

# Without date and software the same picture is the same bytes.
_METADATA: dict[str, dict[str, None]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}
_NEXT = (
    "Try next:",
    "  calibrant assess FILE.csv --label OUTCOME --prob PREDICTION",
    "  calibrant report FILE.csv --label OUTCOME --prob A --prob B -o report.html",
    "  calibrant recalibrate FILE.csv --label OUTCOME --prob PREDICTION",
    "  calibrant --help",
)
_KINDS = ("reliability", "cumulative", "bins", "assessment")


@reads(options.Files, without=["clusters"])
def plot(
    out: PictureOut,
    kind: Kind = None,
    along: Along = None,
    *,
    request: Request,
    resamples: Resamples = None,
    seed: options.Seed = 0,
    dpi: Dpi = 150,
) -> None:
    r"""Draw a reliability diagram, or another one, to a file.

    Several --prob are several models in one diagram. With --by there is one panel per group. With
    --along the diagram shows whether predictions are right on average in each month, for example,
    or region.

    \b
    calibrant plot forecasts.csv --label rain --prob p -o rain.png
    calibrant plot flares.csv --label flare --prob NOAA --prob SIDC -o flares.svg
    calibrant plot forecasts.csv --label rain --prob p --kind cumulative -o cumulative.pdf
    calibrant plot flares.csv --label flare --prob NOAA --along date -o bias.svg
    """
    from calibrant._base import write_atomically
    from calibrant.cli.tables import read
    from calibrant.progress import shown

    if kind is not None and kind not in _KINDS:
        raise CalibrantError(f"--kind must be one of {', '.join(_KINDS)}; got {kind!r:.40}")
    if along is not None and (kind is not None or request.by):
        other = "--by" if kind is None else "--kind"
        raise CalibrantError(f"--along is a diagram of its own: leave out {other}")
    path = check_out(out, tuple(_METADATA), request.files)
    models = read(replace(request, along=along, all=True), needs_rows=along is not None)
    with shown("drawing"):
        asked = {"rng": seed} | ({} if resamples is None else {"n_resamples": resamples})
        draw = _panels if request.by else _diagram
        figure = draw(models, kind or _KINDS[0], asked) if along is None else _along(models, along)
        write_atomically(path, _picture(figure, path.suffix.lower(), dpi))
    say(f"wrote {path}")


def _along(models: dict[str, Data], along: str) -> Figure:
    """Return the bias of one model, or of several, along a column."""
    from calibrant.curves.bias import bias_along
    from calibrant.plot import bias_along as draw

    tables = {
        name: replace(data.call(bias_along, feature=data.feature, simultaneous=True), feature=along)
        for name, data in models.items()
    }
    return _figure(draw(tables if len(tables) > 1 else next(iter(tables.values()))))


def _diagram(models: dict[str, Data], kind: str, asked: dict[str, int]) -> Figure:
    """Return one diagram of one model, or of several."""
    from calibrant import plot
    from calibrant.cli.measure_commands import together

    if kind == "assessment":
        _check_one_model(models, "--kind assessment")
    draw: Any = plot.bins_sweep if kind == "bins" else getattr(plot, kind)
    return _figure(together(models).call(draw, **asked))


def _panels(models: dict[str, Data], kind: str, asked: dict[str, int]) -> Figure:
    """Return a panel for each group of one model."""
    from calibrant.formatting import group_name
    from calibrant.plot import small_multiples

    _check_one_model(models, "--by")
    if kind not in ("reliability", "cumulative"):
        raise CalibrantError("--by goes with --kind reliability or cumulative")
    (data,) = models.values()
    if data.groups is None:
        sketches = {group_name(group): one for group, one in data.pair[0].items()}
        return small_multiples(sketches, kind=kind, **asked).figure  # type: ignore[arg-type]
    return data.call(small_multiples, kind=kind, by=data.groups, **asked).figure


def _check_one_model(models: dict[str, Data], option: str) -> None:
    if len(models) > 1:
        names = ", ".join(map(repr, models))
        raise CalibrantError(f"{option} takes one --prob; got {names:.100}")


def _figure(ax: Any) -> Figure:
    figure: Figure = ax.figure.figure
    return figure


def _picture(figure: Figure, ending: str, dpi: int) -> bytes:
    from matplotlib import rc_context

    content = io.BytesIO()
    form = ending if ending in _METADATA else ".png"
    # Without a salt the identifiers inside an SVG are random.
    with rc_context({"svg.hashsalt": "calibrant"}):
        figure.savefig(content, format=form[1:], dpi=dpi, metadata=_METADATA[form])
    return content.getvalue()


@reads(options.Files)
def report(
    out: PageOut,
    request: Request,
    level: options.Level = 0.95,
    tolerance: options.Tolerance = 0.01,
    bins: options.Bins = 15,
    threshold: options.Threshold = None,
    resamples: options.Resamples = 1000,
    seed: options.Seed = 0,
    title: Title = "Calibration report",
) -> None:
    r"""Write a report as a self-contained page of HTML.

    Verdicts, interactive diagrams and tables in one file, which needs no network. Several --prob
    are several models, compared with each other.

    \b
    calibrant report forecasts.csv --label rain --prob p -o rain.html
    calibrant report flares.csv --label flare --prob NOAA --prob SIDC -o flares.html
    """
    from calibrant._base import HTML_ENDINGS
    from calibrant.cli.measure_commands import together
    from calibrant.cli.tables import read
    from calibrant.progress import shown
    from calibrant.reporting import report as write_report

    path = check_out(out, HTML_ENDINGS, request.files)
    # All rows and their groups are both shown, which sketches by group cannot.
    needs_rows = bool(request.by or request.clusters)
    models = read(replace(request, all=True), needs_rows=needs_rows)
    if request.by:
        _check_one_model(models, "--by")
    data = together(models)
    with shown("measuring"):
        data.call(
            write_report,
            path=path,
            groups=data.groups,
            title=title,
            source=request.source(),
            level=level,
            tolerance=tolerance,
            n_bins=bins,
            threshold=threshold,
            n_resamples=resamples,
            rng=seed,
        )
    say(f"wrote {path}")


def demo(out: DemoOut = None, json: options.Json = False) -> None:
    """Assess bundled forecasts of rain and solar flares."""
    from rich.text import Text

    from calibrant._base import HTML_ENDINGS
    from calibrant.assessment.assess import assess
    from calibrant.cli.messages import write_json
    from calibrant.cli.screen import assessment_parts, show
    from calibrant.datasets import load_flares, load_rain

    path = None if out is None else check_out(out, HTML_ENDINGS)
    rain = assess(*load_rain())
    if json:
        write_json({"rain": rain.to_dict()})
        return
    title = "Rain in Tampere in 2003, forecast a day ahead: are the probabilities calibrated?"
    show(Text(title, style="bold underline"), "", *assessment_parts(rain), "")
    if path is not None:
        from calibrant.progress import shown
        from calibrant.reporting import report as write_report

        days = {name: load_flares(name) for name in ("DAFFS", "NOAA", "SIDC")}
        models = {name: one.y_prob for name, one in days.items()}
        with shown("writing a report"):
            title = "Forecasts of solar flares"
            write_report(days["DAFFS"].y_true, models, path, title=title)
        show(f"Three forecasters of solar flares are compared in {path.resolve()}", "")
    show(*_NEXT)
