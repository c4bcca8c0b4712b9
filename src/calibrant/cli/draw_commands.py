"""``calibrant plot``: a diagram as a picture."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibrant.cli import options
from calibrant.cli.inputs import Request, Wanted, check_out
from calibrant.cli.messages import say
from calibrant.errors import CalibrantError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from calibrant.cli.tables import Data
    from calibrant.inference.compare import Comparison

# What each format would otherwise hold of the day and the machine: without it the same picture is
# the same bytes.
_METADATA: dict[str, dict[str, None]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}
_KINDS = ("reliability", "cumulative", "bins", "assessment")


def plot(
    files: options.Files,
    out: Annotated[
        str,
        typer.Option(
            "--out",
            metavar="PATH",
            show_default=False,
            help="Where to draw it, in the format that its name ends with: .png, .svg or .pdf.",
        ),
    ],
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind",
            metavar="KIND",
            show_default=False,
            help="reliability, which it is if not told; cumulative; bins, errors by their number; "
            "or assessment, all of it.",
        ),
    ] = None,
    along: Annotated[
        str | None,
        typer.Option(
            "--along",
            metavar="COLUMN",
            show_default=False,
            help="Instead of a kind: mean outcome less mean prediction along a feature.",
        ),
    ] = None,
    label: options.Label = None,
    prob: options.ProbOfModels = None,
    weight: options.Weight = None,
    by: options.By = None,
    multiclass: options.Multiclass = None,
    pos_label: options.PosLabel = None,
    on_invalid: options.OnInvalid = "raise",
    form: options.Form = None,
    resamples: options.Resamples = None,
    seed: options.Seed = 0,
    dpi: Annotated[int, typer.Option("--dpi", min=10, max=2400, help="Dots an inch.")] = 150,
) -> None:
    r"""Draw a reliability diagram, or another one, as a picture.

    Several columns of probabilities are several models in one picture, unless --multiclass or
    the labels say that they are classes. With --by there is a panel for each group. With --along
    the picture tells whether predictions are right on average at each month, say, or in each
    region.

    \b
    calibrant plot forecasts.csv --label rain --prob p --out rain.png
    calibrant plot flares.csv --label flare --prob NOAA --prob SIDC --out flares.svg
    calibrant plot forecasts.csv --label rain --prob p --kind cumulative --out walk.pdf
    calibrant plot flares.csv --label flare --prob NOAA --along date --out bias.svg
    """
    from calibrant._base import write_atomically
    from calibrant.cli.screen import waiting
    from calibrant.cli.tables import read_each

    _check_kind(kind, along, by, label)
    path = check_out(out, tuple(_METADATA), files)
    wanted = Wanted(label, tuple(prob or ()), weight, by, along)
    request = Request(
        tuple(files), wanted, pos_label, multiclass, on_invalid, form, each=multiclass is None
    )
    models = read_each(request, needs_rows=along is not None)
    with waiting("drawing"):
        asked = options.given(n_resamples=resamples, rng=seed)
        draw = _diagram if by is None else _panels
        figure = draw(models, kind or _KINDS[0], asked) if along is None else _along(models, along)
        write_atomically(path, _picture(figure, path.suffix.lower(), dpi))
    say(f"wrote {path}")


def _check_kind(kind: str | None, along: str | None, by: str | None, label: str | None) -> None:
    if kind is not None and kind not in _KINDS:
        raise CalibrantError(f"--kind must be one of {', '.join(_KINDS)}; got {kind!r:.40}")
    if along is not None and (kind is not None or by is not None):
        other = "--by" if kind is None else "--kind"
        raise CalibrantError(f"--along draws one picture of its own: leave out {other}")
    if along is not None and along == label:
        raise CalibrantError(f"--along must not be the label itself; both are {label!r:.60}")


def _along(models: dict[str, Data], along: str) -> Figure:
    """Return the bias of one model, or of several, along a column."""
    from calibrant.curves.bias import bias_along
    from calibrant.plot import bias_along as draw

    tables = {
        name: replace(data.ask(bias_along, feature=data.feature, simultaneous=True), feature=along)
        for name, data in models.items()
    }
    return _whole(draw(tables if len(tables) > 1 else next(iter(tables.values()))))


def _diagram(models: dict[str, Data], kind: str, asked: dict[str, int]) -> Figure:
    """Return one diagram of one model, or of several."""
    from calibrant import plot

    if kind == "assessment" and len(models) > 1:
        names = ", ".join(map(repr, models))
        raise CalibrantError(f"--kind assessment takes one --prob; got {names:.100}")
    draw: Any = plot.bins_sweep if kind == "bins" else getattr(plot, kind)
    first = next(iter(models.values()))
    if len(models) == 1:
        return _whole(first.ask(draw, **asked))
    if len(first.pair) == 1:
        return _whole(draw({name: data.pair[0] for name, data in models.items()}, **asked))
    predictions = {name: data.pair[1] for name, data in models.items()}
    return _whole(draw(first.pair[0], predictions, **first.about, **asked))


def _panels(models: dict[str, Data], kind: str, asked: dict[str, int]) -> Figure:
    """Return a panel for each group of one model."""
    from calibrant.cli.inputs import group_name
    from calibrant.plot import small_multiples

    if len(models) > 1:
        names = ", ".join(map(repr, models))
        raise CalibrantError(f"--by takes one --prob; got {names:.100}")
    if kind not in ("reliability", "cumulative"):
        raise CalibrantError("--by goes with --kind reliability or cumulative")
    (data,) = models.values()
    if data.groups is None:
        sketches = {group_name(group): one for group, one in data.pair[0].items()}
        return small_multiples(sketches, kind=kind, **asked).figure  # type: ignore[arg-type]
    # Rows without a group have a panel, too, under a name.
    groups = [group_name(group) for group in data.groups] if None in data.groups else data.groups
    return data.ask(small_multiples, kind=kind, by=groups, **asked).figure


def _whole(ax: Any) -> Figure:
    figure: Figure = ax.figure.figure
    return figure


def _picture(figure: Figure, ending: str, dpi: int) -> bytes:
    from matplotlib import rc_context

    content = io.BytesIO()
    # Names inside an SVG are drawn at random unless they are given salt.
    with rc_context({"svg.hashsalt": "calibrant"}):
        figure.savefig(content, format=ending[1:], dpi=dpi, metadata=_METADATA[ending])
    return content.getvalue()


# ``calibrant report``: a page of HTML that needs nothing else.


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
    from calibrant.cli.screen import waiting
    from calibrant.cli.tables import read_each
    from calibrant.reporting.page import write_page

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
    from calibrant.cli.measure_commands import side_by_side
    from calibrant.inference.compare import compare

    if len(models) < 2 or any(len(data.pair) == 1 for data in models.values()):
        return None
    found: Comparison = side_by_side(models).ask(compare, **asked)
    return found


# ``calibrant demo``: the main job on bundled data.


def demo(json: options.Json = False) -> None:
    """Assess bundled forecasts of rain, solar flares and images."""
    from rich.text import Text

    from calibrant.assessment.assess import assess
    from calibrant.cli.messages import write_json
    from calibrant.cli.screen import assessment_parts, show
    from calibrant.datasets import load_flares, load_imagenet, load_rain

    loaded = {
        "Rain in Tampere in 2003, forecast a day ahead": load_rain(),
        "Solar flares in 2016 and 2017, forecast by DAFFS": load_flares("DAFFS"),
        "Confidence of a ResNet-34 in its answers, 50 000 images": load_imagenet("resnet34"),
    }
    found = {title: assess(*data) for title, data in loaded.items()}
    if json:
        names = [data.name for data in loaded.values()]
        write_json({name: one.to_dict() for name, one in zip(names, found.values(), strict=True)})
        return
    for title, one in found.items():
        show(Text(title, style="bold underline"), "", *assessment_parts(one), "")
