"""Options that several commands share, and what they say about input and output.

Nothing heavy is imported here: the options of all commands are read before any of them runs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from datetime import date
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_origin, get_type_hints

import typer
from typer.core import TyperCommand

from calibrant.errors import CalibrantError

R = TypeVar("R")
_TABLES = "CSV, TSV, Parquet, JSON or JSON lines, also .gz or .zst; patterns; "


def _files(text: str) -> Any:
    return typer.Argument(metavar="FILE", show_default=False, help=text)


def option(name: str, text: str, metavar: str = "COLUMN", *, default: bool | str = False) -> Any:
    """Return an option with a help text; its default is shown if asked for, or as given."""
    names = ("--out", "-o") if name == "--out" else (name,)
    return typer.Option(*names, metavar=metavar, show_default=default, help=text)


def between(name: str, low: int, high: int | None = None) -> Callable[[int], int]:
    """Return a check of a number, which is refused outside its limits."""

    def check(value: int) -> int:
        if value < low or (high is not None and value > high):
            limits = f"at least {low}" if high is None else f"from {low} to {high}"
            raise CalibrantError(f"{name} must be {limits}; got {value}")
        return value

    return check


Files = Annotated[list[str], _files(f"{_TABLES}sketches; - for standard input.")]
Tables = Annotated[list[str], _files(f"{_TABLES}- for standard input.")]
Sketches = Annotated[list[str], _files("Sketches; patterns; - for standard input.")]
Level = Annotated[
    float, typer.Option("--level", metavar="L", help="Confidence level of all intervals.")
]
Tolerance = Annotated[
    float,
    typer.Option("--tolerance", metavar="T", help="Largest acceptable smooth calibration error."),
]
Bins = Annotated[int, typer.Option("--bins", metavar="N", help="Number of bins of binned errors.")]
Threshold = Annotated[
    float | None,
    option(
        "--threshold",
        "Also report what recalibration would save in decisions made at this threshold.",
        "T",
    ),
]
Resamples = Annotated[
    int,
    typer.Option("--resamples", metavar="N", help="Number of bootstrap resamples, at least 39."),
]
Seed = Annotated[
    int,
    typer.Option(
        "--seed",
        metavar="N",
        callback=between("--seed", 0),
        help="Random seed; the same seed gives the same result.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, with all numbers in full.")]
FailIf = Annotated[
    list[str] | None,
    option(
        "--fail-if",
        "Exit with code 1 if it holds, e.g. 'beyond tolerance', 'not within tolerance' or "
        "'smooth_ece.high > 0.05'; may be repeated.",
        "CONDITION",
    ),
]


class Command(TyperCommand):
    """A command whose help lists measures of the registry, read when help is asked for."""

    def format_help_text(self, *arguments: Any) -> None:
        """Write the help."""
        from calibrant.measures.registry import assessed, comparable

        for chosen in (assessed, comparable):
            names = ", ".join(info.name for info in chosen())
            self.help = (self.help or "").replace(f"{{{chosen.__name__}}}", names)
        super().format_help_text(*arguments)


@dataclass(frozen=True)
class Request:
    """What a command line says about its input; columns that it does not name are None or empty.

    `probs` are the predictions of models, `classes` those of one model for each class. With `all`,
    every column that may hold probabilities is a model where none is named. `on_invalid` is None
    where the command always refuses invalid rows.
    """

    files: Sequence[str]
    label: Annotated[
        str | None,
        option(
            "--label",
            "Outcomes: 0 or 1, true or false, yes or no, soft labels in [0, 1], two labels (see "
            "--pos-label), or classes.",
        ),
    ] = None
    probs: Annotated[
        list[str],
        option(
            "--prob",
            "Probabilities: COLUMN, NAME=COLUMN, or a pattern such as 'p_*'; repeat for several "
            "models.",
        ),
    ] = field(default_factory=list)
    classes: Annotated[
        list[str],
        option(
            "--classes",
            "Probabilities of several classes, instead of --prob: a pattern such as 'p_*', or "
            "COLUMN or CLASS=COLUMN, repeated for every class.",
        ),
    ] = field(default_factory=list)
    is_percent: Annotated[
        bool, typer.Option("--percent", help="Probabilities are in percent, from 0 to 100.")
    ] = False
    weight: Annotated[str | None, option("--weight", "Sample weights.")] = None
    by: Annotated[
        list[str],
        option("--by", "Assess each group by itself; repeat for combinations of columns."),
    ] = field(default_factory=list)
    clusters: Annotated[
        str | None,
        option("--clusters", "Clusters of dependent rows, such as a patient or a day."),
    ] = None
    multiclass: Annotated[
        str | None,
        option(
            "--multiclass",
            "With several classes: confidence, the default, or a class, assessed against the rest.",
            "CLASS",
        ),
    ] = None
    pos_label: Annotated[
        str | None,
        option("--pos-label", "The positive label, where outcomes are two other labels.", "LABEL"),
    ] = None
    on_invalid: Annotated[
        Literal["raise", "drop"] | None,
        option(
            "--on-invalid",
            "Refuse or leave out invalid rows: those with a missing value or one out of range.",
            "raise|drop",
            default=True,
        ),
    ] = "raise"
    form: Annotated[
        str | None,
        option(
            "--format",
            "The format of standard input, if it is not detected: csv, tsv, json, jsonl, parquet "
            "or sketch.",
            "FORMAT",
        ),
    ] = None
    along: str | None = None
    all: bool = False

    def source(self) -> dict[str, str]:
        """Return what a report says about its data."""
        names = {
            "File": ", ".join(Path(file).name for file in self.files),
            "Outcomes": self.label or "",
            "Predictions": ", ".join((*self.probs, *self.classes)),
            "Weights": self.weight or "",
            "Groups": ", ".join(self.by),
            "Clusters": self.clusters or "",
            "Date": date.today().isoformat(),
        }
        return {name: text for name, text in names.items() if text}

    def check_names_no_column(self) -> None:
        """Refuse options that name columns, which a sketch does not have."""
        columns = {
            "--label": self.label,
            "--prob": self.probs,
            "--classes": self.classes,
            "--percent": self.is_percent,
            "--weight": self.weight,
            "--by": self.by,
            "--clusters": self.clusters,
            "--along": self.along,
            "--pos-label": self.pos_label,
            "--multiclass": self.multiclass,
        }
        given = [option for option, value in columns.items() if value]
        if given:
            raise CalibrantError(f"a sketch has no columns: leave out {', '.join(given)}")


def reads(
    files: Any, *, without: Collection[str] = (), hints: Mapping[str, Any] | None = None
) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Give a command the options of a `Request`, in place of its parameter `request`.

    `files` is the type of the argument that names its files; some commands do without some options,
    and some have `hints` of their own.
    """
    hints = get_type_hints(Request, include_extras=True) | dict(hints or {})
    asked = [Parameter("files", Parameter.KEYWORD_ONLY, annotation=files)]
    for one in fields(Request):
        if get_origin(hints[one.name]) is Annotated and one.name not in without:
            default = one.default if one.default_factory is MISSING else one.default_factory()
            shape: dict[str, Any] = {"default": default, "annotation": hints[one.name]}
            asked.append(Parameter(one.name, Parameter.KEYWORD_ONLY, **shape))

    def decorate(command: Callable[..., R]) -> Callable[..., R]:
        own, parameters = signature(command, eval_str=True), []
        for one in own.parameters.values():
            is_request = one.name == "request"
            parameters += asked if is_request else [one.replace(kind=Parameter.KEYWORD_ONLY)]

        @wraps(command)
        def run(**given: Any) -> R:
            request = Request(**{one.name: given.pop(one.name) for one in asked})
            return command(request=request, **given)

        run.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        return run

    return decorate


def check_out(
    out: str, endings: Sequence[str] = (), files: Sequence[str] = (), option: str = "--out"
) -> Path:
    """Return a path that can be written to and is none of the `files` that are read.

    The name of a device or a pipe may have any ending: the format is the first that there is.
    """
    from calibrant._base import is_stream
    from calibrant.cli.inputs import named_files

    path = Path(out)
    if endings and path.suffix.lower() not in endings and not is_stream(path):
        raise CalibrantError(f"{option} must end in {', '.join(endings)}; got {out!r:.80}")
    if path.is_dir():
        raise CalibrantError(f"{option} must be a file; {out!r:.80} is a folder")
    if not path.parent.is_dir():
        raise CalibrantError(f"{option} must be in a folder that exists; there is no {path.parent}")
    if path.exists() and any(path.samefile(file) for file in named_files(files) if file != "-"):
        raise CalibrantError(f"{option} must not be a file that is read; {out!r:.80} is")
    return path
