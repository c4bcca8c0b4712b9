"""The page on Posocco and Bonnefoy (2021)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

from calibrant.measures.recommendation import Evidence
from studies.estimating_ece.estimators import CODED, ESTIMATORS, OTHERS
from studies.estimating_ece.score_distributions import Bias
from studies.estimating_ece.summary import (
    ALL,
    AS_CODED,
    RIGHT,
    CurvePoint,
    ErrorCurves,
    Extent,
    curves,
    evidence,
    extents,
)
from studies.frame import (
    COLOURS,
    GREY,
    Comparison,
    Report,
    Row,
    Tables,
    by_table,
    compared,
    figure,
    grid,
    legend_below,
    page,
    picture,
    reasons,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME = "estimating-ece"
N_DISTRIBUTIONS = 540
# The tables of the page, and their rows.
SUMMARIES: dict[str, type[Row]] = {
    "curves": CurvePoint,
    "extent": Extent,
    "evidence": Evidence,
    "truths": Bias,
}
SETTINGS = {"confidence": "confidence", "classwise": "class-wise"}
_MEANS = {"code": "(-1, 1), as in the code", "text": "(0, 1), as in the text"}
# Beside this library's others: the best of each of the paper's families.
_RIVALS = ("legacy 10", "convex 10", "adaptive-convex 10", "density silverman")


def summarised(tables: Tables) -> Tables:
    """Reduce the rounds to the tables that the page is made of."""
    rounds = [rows for name, rows in tables.items() if name.startswith("round")]
    errors = [row for rows in rounds for row in rows]
    return {
        "curves": curves(errors),
        "extent": extents(errors),
        "evidence": evidence(errors),
        "truths": tables["truths"],
    }


def report(tables: Tables) -> Report:
    """Set what the paper says beside what was measured, in rounds or in summaries of them."""
    tables = tables if "curves" in tables else summarised(tables)
    kinds = [means for means in _MEANS if any(row.means == means for row in tables["curves"])]
    both = [ErrorCurves(means, tables["curves"]) for means in kinds]
    # The paper's figure was made by its code.
    main = both[0]
    numbers = list(_comparisons(main))
    others = [*_RIVALS, *(one.name for one in OTHERS)]
    return Report(
        text=_text(both, tables, numbers),
        tables={**tables, "comparisons": numbers},
        figures={
            **{f"figure_2_{one.means}": partial(draw_figure_2, one.points, RIGHT) for one in both},
            "others": partial(draw_others, main.points, others),
        },
    )


def _text(both: Sequence[ErrorCurves], tables: Tables, numbers: list[Comparison]) -> str:
    main = both[0]
    return page(
        _INTRODUCTION,
        _extent(tables["extent"]),
        "## What the paper says",
        "The one number, against the middle one of the fifteen estimators as coded:",
        by_table(numbers)["Section 5.2"],
        "The sentences, checked on what figure 2 shows, absolute errors of the estimators as "
        f"coded, mixtures with means on {_MEANS[main.means]}:",
        grid(
            ["the paper says", "here", "by"],
            [[one.said, "yes" if one.holds else "no", one.found] for one in _claims(main)],
        ),
        "## Figure 2",
        *(
            picture(
                NAME,
                f"figure_2_{one.means}",
                f"The paper's estimators, means on {_MEANS[one.means]}",
            )
            for one in both
        ),
        "## Which is best",
        *(block for one in both for block in _best(one)),
        _nothing(main),
        "## Every number",
        _NUMBERS,
        *(block for one in both for block in _numbers(one)),
        "## The authors' code",
        _CODE,
        *(block for one in both for block in _coded(one)),
        "## Other estimators",
        _OTHERS,
        picture(NAME, "others", f"Means on {_MEANS[main.means]}"),
        "## The truth",
        _TRUTH,
        _truths(tables["truths"]),
        "## Deviations",
        reasons(numbers),
        _CORRECTIONS,
        "## Recommendations",
        _RECOMMENDATIONS,
    )


_INTRODUCTION = """
# Estimating ECE (Posocco and Bonnefoy 2021)

Posocco and Bonnefoy, "Estimating Expected Calibration Errors" (2021), section 5: which estimator of
the calibration error is nearest to the truth on small evaluation sets? Made by
`python -m studies estimating-ece`.

Logistic regression, naive Bayes, support vectors and a random forest are each trained on 300 points
of a Gaussian mixture (2, 5 or 7 classes and features, four modes per class, five mixtures of each
shape, three training sets of each). The true calibration error of each model is known from
P(Y | X). From 30 to 500 rows, 200 times over, every estimator is off by
abs(estimate - truth) / truth; the 95th percentile of that, and then the median over score
distributions, is the paper's measure of error. Confidence: is the predicted class right as often as
its probability says? Class-wise: the mean over classes of "is it class c?".

The paper says that means of modes have elements uniform on (0, 1); its released code draws them
from (-1, 1). Both are measured.
"""

_NUMBERS = """
Relative error (the paper's definition), then absolute error (what its figure shows). Their noise is
the standard deviation when mixtures are resampled, in the middle of the sizes.
"""

_CODE = """
The released code differs from the text, or from what the text must mean:

- Convex weights are exchanged: the nearer of two centres gets the smaller weight. The paper prints
  them so, too. For confidence these bins lie on [1/C, 1], the others on [0, 1].
- Bins of equal mass hold floor(n / B) rows each and the last one all the rest: with 30 bins and 45
  rows, that is 16.
- Class-wise, Silverman's bandwidth of the first class is used for all. Its constant is 1.06, not
  0.9. The kernel is a triweight whose standard deviation is the bandwidth, about a Gaussian: values
  differ by 1%; here it is one.

How many times the error of the estimators as they are meant, geometric means over sizes:
"""

_OTHERS = """
Beside the best of the paper's: ECE with 15 bins (the default of `calibrant.ece`), with the most
bins of equal mass over which the means of outcomes never fall ("sweep"), debiased with 5 and 10
bins of equal mass, `calibrant.smooth_ece`, and `calibrant.logit_smoothed_ece` with uniform noise of
width 1. Binned errors are biased upwards, and the more so the more bins there are. The smooth error
of a population is not its ECE, but at most that: where noise raises other estimates, it is low.
"""

_TRUTH = """
The paper's truth is the ECE of two million points over 2000 bins, which noise makes too large: a
bin of 1000 rows has a gap of about 0.01 even where there is none. Here outcomes are replaced by
their probabilities P(Y | X), and the remaining noise is bracketed: the sum of absolute gaps is too
large, and the sum of the gaps of one half of the points, each with the sign that it has in the
other half, is too small. At the number of bins with the highest lower end, the truth is taken as
the middle. The study does so on pools of 200 000 points, from which evaluation sets are drawn. With
seven features classes lie well apart, so that probabilities are near 0 or 1, as outcomes are, and
do not help much; the bracket does.
"""

_CORRECTIONS = """
Two slips of the paper: the weights of the convex mapping (definition 5) are printed exchanged, and
the adaptive threshold reads floor(N / i), where it means the i-th of B quantiles. One change:
scikit-learn withdraws the probabilities of its SVC, which the authors used; here they come from
`CalibratedClassifierCV`, as it advises.
"""

_RECOMMENDATIONS = """
`calibrant.recommend` returns the estimator with the smallest expected relative error on similar
data: of this size, this number of classes, and scores of this sharpness, which is the mean of
(2 p - 1)². It rests on the table `evidence.csv` beside this page: medians over the score
distributions of each group, of both kinds of mixtures.

```python
import calibrant as cb

print(cb.recommend(*cb.datasets.load_rain()))
```
"""


def _extent(rows: Sequence[Row]) -> str:
    seconds = sum(row.seconds for row in rows if row.setting == "confidence")
    n = sum(row.distributions for row in rows if row.setting == "confidence")
    of_whole = 2 * N_DISTRIBUTIONS * seconds / n / 60
    so_far = (
        f"This page rests on {n} of {2 * N_DISTRIBUTIONS} score distributions, each of which took "
        f"{seconds / n:.1f} seconds of one processor: all of them take {of_whole:.0f} minutes, and "
        f"the {N_DISTRIBUTIONS} of the paper half of that."
    )
    heading = ["means", "setting", "score distributions", "mixtures", "truth", "known to"]
    lines = [
        [
            _MEANS[row.means],
            SETTINGS[row.setting],
            f"{row.distributions} of {N_DISTRIBUTIONS}",
            f"{row.mixtures} of 45",
            f"{row.truth_low:.3f}, **{row.truth:.3f}**, {row.truth_high:.3f}",
            f"{row.uncertainty:.1%}",
        ]
        for row in rows
    ]
    explained = (
        "The truth is given by its 5th percentile, median and 95th percentile over score "
        "distributions, and by how well each is known, as a standard deviation."
    )
    return f"{so_far}\n\n{grid(heading, lines)}\n\n{explained}"


def _best(study: ErrorCurves) -> list[str]:
    heading = ["n", "as coded, absolute", "as meant, absolute", "as meant, relative"]
    return [
        block
        for setting, title in SETTINGS.items()
        for block in (
            f"{title.capitalize()}, means on {_MEANS[study.means]}: the best of the fifteen.",
            grid(heading, _best_table(study, setting)),
        )
    ]


def _nothing(study: ErrorCurves) -> str:
    """Return the largest size at which an estimate of 0 has no larger error."""
    parts = []
    for setting, title in SETTINGS.items():
        errors = {
            n: study.value(setting, study.best(setting, ALL, n, "relative"), n, "relative")
            for n in study.sizes
        }
        beaten = [n for n, error in errors.items() if error >= 1]
        parts.append(f"{title} up to n = {beaten[-1]}" if beaten else f"{title} at no size")
    return (
        "An estimate of 0 is always off by 100% of the truth, never by more. By that measure it is "
        f"as good as the best estimator, the library's others included: {', '.join(parts)}."
    )


def _numbers(study: ErrorCurves) -> list[str]:
    middle = study.sizes[len(study.sizes) // 2]

    def line(setting: str, name: str) -> list[str]:
        pairs = (
            f"{study.value(setting, name, n, 'relative'):.2f} · "
            f"{study.value(setting, name, n, 'absolute'):.3f}"
            for n in study.sizes
        )
        point = study.points[setting, name, middle]
        return [name, *pairs, f"{point.relative_noise:.2f} · {point.absolute_noise:.3f}"]

    heading = [*(f"n = {n}" for n in study.sizes), "noise"]
    return [
        block
        for setting, title in SETTINGS.items()
        for block in (
            f"### {title.capitalize()}, means on {_MEANS[study.means]}",
            grid(["", *heading], [line(setting, name) for name in ALL]),
        )
    ]


def _coded(study: ErrorCurves) -> list[str]:
    def line(name: str) -> list[str]:
        meant = name.replace(", code", "")
        return [
            meant,
            *(
                f"{study.ratio(setting, name, meant, measure):.2f}"
                for setting in SETTINGS
                for measure in ("relative", "absolute")
            ),
        ]

    heading = [
        f"means on {_MEANS[study.means]}",
        *(f"{title}, {m}" for title in SETTINGS.values() for m in ("relative", "absolute")),
    ]
    return [grid(heading, [line(one.name) for one in CODED])]


def _truths(rows: Sequence[Row]) -> str:
    heading = [
        "model, classes, features",
        "setting",
        "as published",
        "probabilities",
        "bracket",
        "study",
    ]
    return grid(
        heading,
        [
            [
                f"{row.model}, {row.n_classes}, {row.n_features}",
                SETTINGS[row.setting],
                f"{row.published:.4f}",
                f"{row.soft:.4f}",
                f"{row.low:.4f} to {row.high:.4f}",
                f"{row.pool:.4f}",
            ]
            for row in rows
        ],
    )


# The sentences of section 5.2, each beside what was measured.

# An error of up to this many times the smallest counts as equally good.
_AS_GOOD = 1.05
_PERCENT = "0.1"
_NOTE = (
    "The released plotting code takes medians of the deviations before they are divided by the "
    "truth: figure 2 shows absolute errors, and 0.1 is one of those."
)


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, whether it holds here, and by what numbers."""

    said: str
    holds: bool
    found: str


def _comparisons(study: ErrorCurves) -> Iterator[Comparison]:
    """Compare the one number of the section: errors "around 10% of the true value"."""
    n = study.sizes[0]
    for setting in ("confidence", "classwise"):
        points = [study.points[setting, name, n] for name in AS_CODED]
        for measure, note in (("relative", _NOTE), ("absolute", "")):
            middle = sorted(points, key=attrgetter(measure))[len(points) // 2]
            ours, noise = (getattr(middle, name) for name in (measure, f"{measure}_noise"))
            where = f"{measure} error, n = {n}"
            yield compared("Section 5.2", setting, where, _PERCENT, ours, noise, note)


def _claims(study: ErrorCurves) -> list[Claim]:
    """Check what the paper reads from figure 2, on what figure 2 shows: absolute errors."""
    return [
        _silverman_confidence(study),
        _mapping(study, "convex", "legacy"),
        _mapping(study, "adaptive-convex", "adaptive"),
        _adaptive(study),
        _alike(study),
        _square_root(study),
        *_class_wise(study),
        _silverman_class_wise(study),
    ]


def _silverman_confidence(study: ErrorCurves) -> Claim:
    times = _silverman(study, "confidence")
    n_good = sum(one <= _AS_GOOD for one in times)
    return Claim(
        "Confidence: ECE_d with Silverman's rule is best in almost all data regimes.",
        n_good >= len(times) - 1,
        f"{n_good} of {len(times)} sizes within 5% of the smallest error; "
        f"{min(times):.2f} to {max(times):.2f} times it",
    )


def _silverman_class_wise(study: ErrorCurves) -> Claim:
    there, here = _silverman(study, "confidence"), _silverman(study, "classwise")
    return Claim(
        "Class-wise: Silverman's rule is a less relevant choice than for confidence.",
        sum(here) > sum(there),
        f"{min(here):.2f} to {max(here):.2f} times the smallest error, for confidence "
        f"{min(there):.2f} to {max(there):.2f} times",
    )


def _silverman(study: ErrorCurves, setting: str) -> list[float]:
    """Return the error of Silverman's rule relative to the smallest, for every size."""
    name = "density, code silverman"
    return [study.times_the_best(setting, name, AS_CODED, n, "absolute") for n in study.sizes]


def _mapping(study: ErrorCurves, convex: str, hard: str) -> Claim:
    coded_hard = hard if hard == "legacy" else f"{hard}, code"
    ratios = {
        (setting, count): study.ratio(
            setting, f"{convex}, code {count}", f"{coded_hard} {count}", "absolute"
        )
        for setting in ("confidence", "classwise")
        for count in ("10", "30", "sqrt")
    }
    listed = ", ".join(f"{ratios['confidence', count]:.2f}" for count in ("10", "30", "sqrt"))
    return Claim(
        f"The convex mapping improves the {hard} estimator.",
        all(one < 1 for one in ratios.values()),
        f"errors {listed} times as large for 10, 30 and √n bins, confidence",
    )


def _adaptive(study: ErrorCurves) -> Claim:
    ratios = [
        study.ratio("confidence", f"adaptive, code {count}", f"legacy {count}", "absolute")
        for count in ("10", "30", "sqrt")
    ]
    listed = ", ".join(f"{one:.2f}" for one in ratios)
    return Claim(
        "Confidence: adaptive bins underperform when alone.",
        all(one > 1 for one in ratios),
        f"errors {listed} times those of uniform bins",
    )


def _alike(study: ErrorCurves) -> Claim:
    spans = [
        study.span("confidence", AS_CODED, n, "absolute") for n in (study.sizes[0], study.sizes[-1])
    ]
    first, last = (middle / smallest for smallest, middle, _ in spans)
    return Claim(
        "Confidence: above 300 samples many estimators perform alike.",
        last < first and last < 1.2,
        f"the middle one of fifteen is {first:.2f} times the best at n = {study.sizes[0]}, "
        f"{last:.2f} times at n = {study.sizes[-1]}",
    )


def _square_root(study: ErrorCurves) -> Claim:
    n = study.sizes[-1]
    families = ("legacy", "adaptive, code", "convex, code", "adaptive-convex, code")
    ratios = [
        study.ratio(setting, f"{family} sqrt", f"{family} 10", "absolute", [n])
        for setting in ("confidence", "classwise")
        for family in families
    ]
    return Claim(
        "On average the square root of n is slightly too many bins as n grows.",
        math.prod(ratios) > 1,
        f"at n = {n} errors are {min(ratios):.2f} to {max(ratios):.2f} times those of 10 bins",
    )


def _class_wise(study: ErrorCurves) -> Iterator[Claim]:
    few = [n for n in study.sizes if n < 100]
    many = [n for n in study.sizes if n > 100]
    for said, name, sizes in (
        ("below 100 samples ECE_ac with √n bins is best", "adaptive-convex, code sqrt", few),
        ("above, ECE_ac with a fixed small number of bins", "adaptive-convex, code 10", many),
    ):
        times = [study.times_the_best("classwise", name, AS_CODED, n, "absolute") for n in sizes]
        winners = dict.fromkeys(study.best("classwise", AS_CODED, n, "absolute") for n in sizes)
        yield Claim(
            f"Class-wise: {said}.",
            max(times) <= _AS_GOOD,
            f"{min(times):.2f} to {max(times):.2f} times the smallest error; smallest: "
            + ", ".join(winners),
        )


def _best_table(study: ErrorCurves, setting: str) -> list[list[str]]:
    """Return, for every size, the best of the fifteen as coded, as meant, and of all."""
    return [
        [str(n)]
        + [
            f"{name}: {study.value(setting, name, n, measure):.3g}"
            for names, measure in ((AS_CODED, "absolute"), (RIGHT, "absolute"), (RIGHT, "relative"))
            for name in [study.best(setting, names, n, measure)]
        ]
        for n in study.sizes
    ]


# The figures.

# By setting, estimator and size.
Points = Mapping[tuple[str, str, int], Row]

_FAMILIES = {
    "legacy": GREY,
    "adaptive": COLOURS[1],
    "convex": COLOURS[0],
    "adaptive-convex": COLOURS[3],
    "density": COLOURS[2],
    "debiased": COLOURS[5],
    "smooth": COLOURS[4],
    "logit-smoothed": "#000000",
}
_STYLES = {
    "10": "-",
    "30": ":",
    "sqrt": "--",
    "15": "-.",
    "5": "--",
    "sweep": ":",
    "": "-",
    "silverman": "-",
    "0.1": "--",
    "0.033": ":",
}
_MARKERS = {"10": "o", "30": "^", "sqrt": "s", "silverman": "D", "0.1": "v", "0.033": "P"}


def draw_figure_2(points: Points, names: Sequence[str]) -> Figure:
    """Draw errors against n: as the paper defines them, and as its code plots them."""
    what = {"relative": "relative to the truth", "absolute": "absolute"}
    drawn = figure(2, 2, 11, 9.2, sharex=True)
    for row, (setting, title) in enumerate(SETTINGS.items()):
        for axes, (measure, words) in zip(drawn.axes[2 * row :], what.items(), strict=False):
            _curves(axes, points, setting, names, measure)
            axes.set_yscale("log")
            axes.set_title(f"{title}, {words}", loc="left")
    for axes in drawn.axes[::2]:
        axes.set_ylabel("median 95th percentile of error")
    _finish(drawn, 5)
    return drawn


def draw_others(points: Points, names: Sequence[str]) -> Figure:
    """Draw errors above biases, one column per setting."""
    drawn = figure(2, 2, 11, 8.6, sharex=True)
    for column, (setting, title) in enumerate(SETTINGS.items()):
        above, below = drawn.axes[column], drawn.axes[2 + column]
        _curves(above, points, setting, names, "relative")
        above.set_yscale("log")
        above.set_title(title, loc="left")
        _curves(below, points, setting, names, "bias")
        below.axhline(0, color=GREY, linewidth=1)
    drawn.axes[0].set_ylabel("median 95th percentile of relative error")
    drawn.axes[2].set_ylabel("median relative bias")
    _finish(drawn, 4)
    return drawn


def _curves(axes: Axes, points: Points, setting: str, names: Sequence[str], measure: str) -> None:
    sizes = sorted({n for _, _, n in points})
    for name in names:
        one = ESTIMATORS[name]
        axes.plot(
            sizes,
            [getattr(points[setting, name, n], measure) for n in sizes],
            color=_FAMILIES[one.family],
            linestyle=_STYLES[one.parameter],
            marker=_MARKERS.get(one.parameter, "o"),
            markersize=3.5,
            linewidth=1.4,
            label=name,
        )
    axes.set_xscale("log")


def _finish(drawn: Figure, n_columns: int) -> None:
    """Write numbers along the axes, and put the legend below."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter

    plain = FuncFormatter(lambda value, _: f"{value:g}")
    for axes in drawn.axes:
        axes.xaxis.set_major_locator(FixedLocator([30, 50, 100, 200, 300, 500]))
        axes.xaxis.set_major_formatter(plain)
        axes.xaxis.set_minor_formatter(NullFormatter())
        if axes.get_yscale() == "log":
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)))
            axes.yaxis.set_major_formatter(plain)
            axes.yaxis.set_minor_formatter(NullFormatter())
    for axes in drawn.axes[2:]:
        axes.set_xlabel("rows in the evaluation set")
    legend_below(drawn, drawn.axes[0], n_columns)
