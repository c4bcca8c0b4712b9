"""``calibrant compare``: which of several models is better calibrated, and how sure is that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibrant.cli import options
from calibrant.cli.request import Request, Wanted
from calibrant.errors import CalibrantError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from calibrant.cli.tables import Data
    from calibrant.inference.compare_result import Comparison


def compare(
    files: options.Tables,
    label: options.Label = None,
    prob: options.ProbOfModels = None,
    weight: options.Weight = None,
    multiclass: options.Multiclass = None,
    pos_label: options.PosLabel = None,
    form: options.Form = None,
    measure: Annotated[
        str,
        typer.Option(
            "--measure",
            metavar="NAME",
            help="The calibration error or proper score to compare by.",
        ),
    ] = "smooth_ece",
    level: options.Level = 0.95,
    resamples: options.Resamples = None,
    seed: options.Seed = 0,
    json: options.Json = False,
) -> None:
    r"""Compare models on the same rows.

    In one file each column of probabilities is a model. Of several files each is a model, with the
    same outcomes in the same rows; several columns are classes then. Rows with nothing or nonsense
    in them are refused, because models must be measured on the same ones.

    NAME of --measure is one of {comparable}.

    \b
    calibrant compare flares.csv --label flare --prob DAFFS --prob NOAA
    calibrant compare before.csv after.csv --label y --prob p --measure brier_score
    """
    from calibrant.cli.messages import write_json
    from calibrant.cli.terminal import show, waiting
    from calibrant.inference.compare import compare as compared

    wanted = Wanted(label, tuple(prob or ()), weight)
    request = Request(tuple(files), wanted, pos_label, multiclass, form=form, each=True)
    data = side_by_side(_models(request))
    asked = options.given(measure=measure, level=level, n_resamples=resamples, rng=seed)
    with waiting("comparing"):
        found = data.ask(compared, **asked)
    if json:
        write_json(found.to_dict())
    else:
        show(*_parts(found))


def _models(request: Request) -> dict[str, Data]:
    """Return the models by name: the columns of one file, or several files."""
    from calibrant.cli.files import named_files
    from calibrant.cli.tables import read, read_each

    files = named_files(request.files)
    if len(files) == 1:
        return read_each(request, needs_rows=True)
    names = [Path(file).stem for file in files]
    if len(set(names)) < len(names):
        names = files
    return {
        name: read(replace(request, files=(file,)), needs_rows=True)
        for name, file in zip(names, files, strict=True)
    }


def side_by_side(models: dict[str, Data]) -> Data:
    """Return the outcomes that models share, and the predictions of each."""
    for name, data in models.items():
        if len(data.pair) == 1:
            raise CalibrantError(
                f"models are compared row by row, and {name!r:.80} is a sketch: give the rows"
            )
    (name, first), *others = models.items()
    if not others:
        raise CalibrantError(f"there must be two models to compare; got {name!r:.80} alone")
    predictions = {name: first.pair[1]}
    for other, data in others:
        predictions[other] = _in_the_order_of((name, first), (other, data))
        _check_same_outcomes((name, first.pair[0]), (other, data.pair[0]))
    return replace(first, pair=(first.pair[0], predictions))


def _in_the_order_of(first: tuple[str, Data], second: tuple[str, Data]) -> Any:
    """Return the predictions of the second model, with its classes in the order of the first."""
    (one, a), (other, b) = first, second
    classes, others = (data.about.get("labels") for data in (a, b))
    if classes == others:
        return b.pair[1]
    if classes is None or others is None:
        few, many = (other, one) if others is None else (one, other)
        n_classes = len(classes or others or ())
        raise CalibrantError(
            f"models must have the same classes; {few!r:.80} has one column of probabilities and "
            f"{many!r:.80} has {n_classes}"
        )
    if set(classes) != set(others):
        raise CalibrantError(
            f"models must have the same classes; in {one!r:.80} they are {_listed(classes)} and in "
            f"{other!r:.80} {_listed(others)}"
        )
    return b.pair[1][:, [others.index(name) for name in classes]]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:6])) + ", ..." * (len(names) > 6)


def _check_same_outcomes(first: tuple[str, Any], second: tuple[str, Any]) -> None:
    (one, y), (other, z) = first, second
    if len(y) != len(z):
        raise CalibrantError(
            f"models must be compared on the same rows; {one} has {len(y)} and {other} has {len(z)}"
        )
    different = y != z
    if different.any():
        row = int(different.argmax())
        raise CalibrantError(
            f"models must be compared on the same outcomes; in row {row + 1} {one} has "
            f"{y[row].item()!r} and {other} has {z[row].item()!r}"
        )


def _parts(found: Comparison) -> list[RenderableType]:
    """Return a comparison as parts to show: a ranking, and the differences of all pairs."""
    from calibrant.cli.sheet import Sheet
    from calibrant.cli.terminal import fitted, p_value

    level = f"{100 * found.level:g}% interval"
    ranking = Sheet("model", ("rank", found.measure, level, "corrected"), ("corrected", "rank"))
    for model in found.models:
        one = model.estimate
        ends = f"{one.low:.4f} to {one.high:.4f}"
        cells = (str(model.rank), f"{one.value:.4f}", ends, f"{one.bias_corrected:.4f}")
        ranking.add(model.name, cells=cells)
    pairs = Sheet("difference", ("value", level, "P", "P adjusted"), ("P", level))
    for pair in found.pairs:
        ends = f"{pair.low:+.4f} to {pair.high:+.4f}"
        chances = (p_value(pair.p_value), p_value(pair.p_adjusted))
        pairs.add(pair.a, pair.b, cells=(f"{pair.difference:+.4f}", ends, *chances))
    told_apart = f"told apart where P, adjusted for their number, is at most {1 - found.level:.2g}"
    note = f"n = {found.n}; less is better; models are {told_apart}."
    return [*fitted(ranking), "", *fitted(pairs), "", note]
