"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        show_default=False,
        help="CSV, TSV, Parquet or JSON lines, also .gz or .zst; patterns; sketches; - for a pipe.",
    ),
]
Tables = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        show_default=False,
        help="CSV, TSV, Parquet or JSON lines, also .gz or .zst; patterns; - for a pipe.",
    ),
]
Sketches = Annotated[
    list[str],
    typer.Argument(metavar="FILE", show_default=False, help="Sketches; patterns; - for a pipe."),
]
Label = Annotated[
    str | None,
    typer.Option(
        "--label",
        metavar="COLUMN",
        show_default=False,
        help="Outcomes: 0 or 1, yes or no, soft in between, two names (--pos-label), or classes.",
    ),
]
Prob = Annotated[
    list[str] | None,
    typer.Option(
        "--prob",
        metavar="COLUMN",
        show_default=False,
        help="Probabilities. Once a class for several: COLUMN, CLASS=COLUMN, or a pattern 'p_*'.",
    ),
]
ProbOfModels = Annotated[
    list[str] | None,
    typer.Option(
        "--prob",
        metavar="COLUMN",
        show_default=False,
        help="Probabilities. Once a model, or a class, for several: COLUMN, NAME=COLUMN, 'p_*'.",
    ),
]
Weight = Annotated[
    str | None,
    typer.Option("--weight", metavar="COLUMN", show_default=False, help="Weights of rows."),
]
By = Annotated[
    str | None,
    typer.Option("--by", metavar="COLUMN", show_default=False, help="Groups, each by itself."),
]
PosLabel = Annotated[
    str | None,
    typer.Option(
        "--pos-label",
        metavar="LABEL",
        show_default=False,
        help="The outcome that --prob speaks of, where outcomes are not 0 and 1.",
    ),
]
Multiclass = Annotated[
    str | None,
    typer.Option(
        "--multiclass",
        metavar="WHAT",
        show_default=False,
        help="With several classes: confidence (the default), or one class against the rest.",
    ),
]
OnInvalid = Annotated[
    Literal["raise", "drop"],
    typer.Option(
        "--on-invalid",
        metavar="raise|drop",
        help="Whether to refuse rows with nothing or nonsense in them, or leave them out.",
    ),
]
Form = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        show_default=False,
        help="What a pipe holds, if not obvious: csv, tsv, json, jsonl, parquet or sketch.",
    ),
]
Level = Annotated[float, typer.Option("--level", help="Of all intervals.")]
Bins = Annotated[int, typer.Option("--bins", help="How many bins binned errors have.")]
# The default is stated in the library alone.
Resamples = Annotated[
    int | None,
    typer.Option(
        "--resamples",
        show_default=False,
        help="Bootstrap resamples; 1000 if not given. At least 39.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same numbers.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead, with every number.")]
FailIf = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-if",
        metavar="CONDITION",
        show_default=False,
        help="End with exit code 1 where it holds, e.g. 'smooth_ece.high > 0.05'; may be repeated.",
    ),
]


def given(**options: Any) -> dict[str, Any]:
    """Return the options that were given; the library has its own values for others."""
    return {name: value for name, value in options.items() if value is not None}
