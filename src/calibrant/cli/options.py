"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

_TABLES = "CSV, TSV, Parquet or JSON lines, also .gz or .zst; patterns; "


def _files(text: str) -> Any:
    return typer.Argument(metavar="FILE", show_default=False, help=text)


def option(name: str, text: str, metavar: str = "COLUMN", *, default: bool | str = False) -> Any:
    """Return an option with a help text; its default is shown if asked for, or as given."""
    return typer.Option(name, metavar=metavar, show_default=default, help=text)


Files = Annotated[list[str], _files(f"{_TABLES}sketches; - for standard input.")]
Tables = Annotated[list[str], _files(f"{_TABLES}- for standard input.")]
Sketches = Annotated[list[str], _files("Sketches; patterns; - for standard input.")]
Label = Annotated[
    str | None,
    option(
        "--label",
        "Outcomes: 0 or 1, true or false, soft labels in [0, 1], two labels (see --pos-label), or "
        "classes.",
    ),
]
Prob = Annotated[
    list[str] | None,
    option(
        "--prob",
        "Probabilities. For several classes once per class: COLUMN, CLASS=COLUMN, or a pattern "
        "such as 'p_*'.",
    ),
]
ProbOfModels = Annotated[
    list[str] | None,
    option(
        "--prob",
        "Probabilities. For several models, or classes, once per model or class: COLUMN, "
        "NAME=COLUMN, or a pattern such as 'p_*'.",
    ),
]
Weight = Annotated[str | None, option("--weight", "Sample weights.")]
By = Annotated[str | None, option("--by", "Groups, each treated separately.")]
PosLabel = Annotated[
    str | None,
    option("--pos-label", "The positive label, where outcomes are not 0 and 1.", "LABEL"),
]
Multiclass = Annotated[
    str | None,
    option(
        "--multiclass",
        "For several classes: confidence, the default, or one class against the rest.",
        "confidence|CLASS",
    ),
]
OnInvalid = Annotated[
    Literal["raise", "drop"],
    option(
        "--on-invalid",
        "Refuse or leave out invalid rows: those with a missing value or one out of range.",
        "raise|drop",
        default=True,
    ),
]
Form = Annotated[
    str | None,
    option(
        "--format",
        "The format of standard input, if it is not detected: csv, tsv, json, jsonl, parquet or "
        "sketch.",
        "FORMAT",
    ),
]
Level = Annotated[float, typer.Option("--level", help="Confidence level of all intervals.")]
Bins = Annotated[int, typer.Option("--bins", help="Number of bins of binned errors.")]
Resamples = Annotated[
    int,
    typer.Option("--resamples", metavar="N", help="Number of bootstrap resamples, at least 39."),
]
Seed = Annotated[
    int, typer.Option("--seed", min=0, help="Random seed; the same seed gives the same result.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, with all numbers in full.")]
FailIf = Annotated[
    list[str] | None,
    option(
        "--fail-if",
        "Exit with code 1 if it holds, e.g. 'smooth_ece.high > 0.05'; may be repeated.",
        "CONDITION",
    ),
]
