"""What the page on Posocco and Bonnefoy (2021) shows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from calibrant.papers._ece_curves import CurvePoint, curves
from calibrant.papers._ece_estimators import CODED, OTHERS
from calibrant.papers._ece_evidence import Evidence, evidence
from calibrant.papers._ece_extent import Extent, extents
from calibrant.papers._ece_study import ALL, RIGHT, Study
from calibrant.papers._ece_truths import Bias
from calibrant.papers._estimating_ece_claims import best_table, claims, comparisons
from calibrant.papers._estimating_ece_figures import SETTINGS, compared_others, figure_2
from calibrant.papers._frame import Report, Row, Tables
from calibrant.papers._page import Comparison, grid, page, picture, reasons, side_by_side

NAME = "estimating-ece"
N_DISTRIBUTIONS = 540
# What a page is made of, and the rows of each.
SUMMARIES: dict[str, type[Row]] = {
    "curves": CurvePoint,
    "extent": Extent,
    "evidence": Evidence,
    "truths": Bias,
}
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
    studies = [Study(means, tables["curves"]) for means in kinds]
    # The paper's figure was made by its code.
    main = studies[0]
    numbers = list(comparisons(main))
    others = [*_RIVALS, *(one.name for one in OTHERS)]
    return Report(
        text=_text(studies, tables, numbers),
        tables={**tables, "comparisons": numbers},
        figures={
            **{f"figure_2_{one.means}": partial(figure_2, one.points, RIGHT) for one in studies},
            "others": partial(compared_others, main.points, others),
        },
    )


def _text(studies: Sequence[Study], tables: Tables, numbers: list[Comparison]) -> str:
    main = studies[0]
    return page(
        _INTRODUCTION,
        _extent(tables["extent"]),
        "## What the paper says",
        "The one number, against the middle one of the fifteen estimators as coded:",
        side_by_side(numbers, "Section 5.2"),
        "The sentences, checked on what figure 2 shows, absolute errors of the estimators as "
        f"coded, mixtures with means on {_MEANS[main.means]}:",
        grid(
            ["the paper says", "here", "by"],
            [[one.said, "yes" if one.holds else "no", one.found] for one in claims(main)],
        ),
        "## Figure 2",
        *(
            picture(
                NAME,
                f"figure_2_{one.means}",
                f"The paper's estimators, means on {_MEANS[one.means]}",
            )
            for one in studies
        ),
        "## Which is best",
        *(block for one in studies for block in _best(one)),
        _nothing(main),
        "## Every number",
        _NUMBERS,
        *(block for one in studies for block in _numbers(one)),
        "## The authors' code",
        _CODE,
        *(block for one in studies for block in _coded(one)),
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
`calibrant papers estimating-ece`.

Logistic regression, naive Bayes, support vectors and a random forest are each trained on 300 points
of a Gaussian mixture (2, 5 or 7 classes and features, four modes a class, five mixtures of each
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
what chance does to them, mixtures being resampled, in the middle of the sizes.
"""

_CODE = """
The released code differs from the text, or from what the text must mean:

- Convex shares are exchanged: the nearer of two centres gets the smaller share. The paper prints
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
their chances P(Y | X), and what is left of noise is bracketed: the sum of absolute gaps is too
large, and the sum of the gaps of one half of the points, each with the sign that it has in the
other half, is too small. At the number of bins with the highest lower end, the truth is taken as
the middle. The study does so on pools of 200 000 points, from which evaluation sets are drawn. With
seven features classes lie well apart, so that chances are near 0 or 1, as outcomes are, and do not
help much; the bracket does.
"""

_CORRECTIONS = """
Two slips of the paper: the shares of the convex mapping (definition 5) are printed exchanged, and
the adaptive threshold reads floor(N / i), where it means the i-th of B quantiles. One change:
scikit-learn withdraws the probabilities of its SVC, which the authors used; here they come from
`CalibratedClassifierCV`, as it advises.
"""

_RECOMMENDATIONS = """
`calibrant.papers.recommend` names the estimator with the least expected relative error on similar
data: of this size, this number of classes, and scores this sharp, where sharpness is the mean of
(2 p - 1)². It rests on the table `evidence.csv` beside this page: medians over the score
distributions of each group, of both kinds of mixtures.

```python
from calibrant.datasets import load_rain
from calibrant.papers import recommend

print(recommend(*load_rain()))
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


def _best(study: Study) -> list[str]:
    heading = ["n", "as coded, absolute", "as meant, absolute", "as meant, relative"]
    return [
        block
        for setting, title in SETTINGS.items()
        for block in (
            f"{title.capitalize()}, means on {_MEANS[study.means]}: the best of the fifteen.",
            grid(heading, best_table(study, setting)),
        )
    ]


def _nothing(study: Study) -> str:
    """Say up to what size saying 0 would do as well."""
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


def _numbers(study: Study) -> list[str]:
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


def _coded(study: Study) -> list[str]:
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
    heading = ["model, classes, features", "setting", "as published", "chances", "bracket", "study"]
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
