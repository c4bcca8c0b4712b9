"""Posocco and Bonnefoy (2021): samples in batches, known truths, and the headline facts."""

import sys
from dataclasses import replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from shutil import copy2

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import calibrant as cb
from calibrant.measures.recommendation import ESTIMATORS as CALLS
from studies import estimating_ece
from studies.estimating_ece.estimators import (
    CODED,
    ESTIMATORS,
    FINEST_BANDWIDTH,
    PUBLISHED,
    Samples,
    density_error,
    silverman,
)
from studies.estimating_ece.score_distributions import (
    Mixture,
    PoolProblem,
    ScoreDistribution,
    truth_of,
)
from studies.estimating_ece.summary import ALL, RIGHT, ErrorCurves
from studies.frame import Part, to_csv
from tests.tolerances import ROUNDING, assert_same_text, nearly

DOCS = Path(__file__).parents[2] / "docs" / "papers"
PUBLIC = [one for one in ESTIMATORS.values() if one.name in CALLS]


# Scores spread out, tied, at 0 and 1, and close to 0.
def scores(kind, shape, rng):
    match kind:
        case "spread":
            return rng.beta(0.7, 1.5, shape)
        case "tied":
            return rng.binomial(20, 0.3, shape) / 20
        case "ends":
            return np.where(rng.random(shape) < 0.4, rng.integers(0, 2, shape), rng.random(shape))
        case "sharp":
            return rng.beta(0.05, 0.3, shape)
        case "equal":
            return np.full(shape, 0.25)


def drawn(kind, n, n_samples=4):
    rng = np.random.default_rng([n, len(kind)])
    p = scores(kind, (n_samples, n), rng)
    return (rng.random(p.shape) < 0.8 * p + 0.05).astype(float), p


def called(estimator, y, p, **how):
    """Return what a user gets, nan where debiasing is refused."""
    function, options = CALLS[estimator.name]
    measure = partial(getattr(cb, function), y, p, **options, **how)
    if estimator.family != "debiased":
        return measure()
    try:
        return measure()
    except cb.CalibrantError:
        return np.nan


def assert_equal(estimator, ours, users):
    # Integrals are taken on a coarser grid here.
    np.testing.assert_allclose(
        ours, users, atol=1e-12 if CALLS[estimator.name][0] == "ece" else 5e-5
    )


@pytest.mark.parametrize("kind", ["spread", "tied", "ends", "sharp", "equal"])
@pytest.mark.parametrize("estimator", PUBLIC, ids=lambda one: one.name)
def test_samples_in_batches_are_what_single_calls_say(estimator, kind):
    for n in (30, 101):
        y, p = drawn(kind, n)
        # Bandwidths that nothing resolves are another matter, below.
        resolved = silverman(Samples.of(y, p)) > FINEST_BANDWIDTH
        y, p = y[resolved], p[resolved]
        assert len(y) > 0
        samples = Samples.of(y, p)
        expected = [called(estimator, *one) for one in zip(y, p, strict=True)]
        assert_equal(estimator, estimator.measure(samples, samples), expected)


@pytest.mark.parametrize("estimator", PUBLIC, ids=lambda one: one.name)
def test_the_settings_are_those_of_multiclass(estimator):
    rng = np.random.default_rng(5)
    table = rng.dirichlet(np.full(3, 0.6), (2, 60))
    label = np.array([[rng.choice(3, p=row) for row in rows] for rows in table])
    top = table.argmax(axis=2)
    confidence = Samples.of((top == label).astype(float), table.max(axis=2), 1 / 3)
    classes = [Samples.of((label == c).astype(float), table[:, :, c]) for c in range(3)]
    for setting, problems in {"confidence": [confidence], "classwise": classes}.items():
        ours = np.mean([estimator.measure(one, problems[0]) for one in problems], axis=0)
        users = [
            called(estimator, *one, multiclass=setting) for one in zip(label, table, strict=True)
        ]
        assert_equal(estimator, ours, users)


def test_the_bandwidth_is_silvermans_down_to_what_is_resolved():
    p = np.array([np.linspace(0.2, 0.8, 32), np.linspace(0.5, 0.5 + 1e-5, 32)])
    y = np.tile([0.0, 1.0], (2, 16))
    wide, narrow = silverman(Samples.of(y, p))
    assert wide == pytest.approx(0.9 * np.std(p[0], ddof=1) * 32**-0.2)
    assert narrow == FINEST_BANDWIDTH


# The authors' rules, row by row.


def coded_edges(family, p, n_bins, lowest):
    if "adaptive" not in family:
        return lowest + (1 - lowest) * np.arange(n_bins + 1) / n_bins
    ordered, count = np.sort(p), len(p) // n_bins
    inner = [(ordered[i * count - 1] + ordered[i * count]) / 2 for i in range(1, n_bins)]
    return np.array([lowest, *inner, 1.0])


def coded_error(family, y, p, n_bins, lowest):
    edges = coded_edges(family, p, n_bins, lowest)
    centres = (edges[1:] + edges[:-1]) / 2
    sums = np.zeros(n_bins)
    for label, score in zip(y, p, strict=True):
        if "convex" not in family:
            sums[max(k for k in range(n_bins) if edges[k] <= score)] += label - score
        elif score < centres[0] or score > centres[-1]:
            sums[0 if score < centres[0] else -1] += label - score
        else:
            upper = next(k for k in range(n_bins) if centres[k] >= score)
            fraction = (centres[upper] - score) / (centres[upper] - centres[upper - 1])
            sums[upper] += fraction * (label - score)
            sums[upper - 1] += (1 - fraction) * (label - score)
    return np.abs(sums).sum() / len(y)


@pytest.mark.parametrize("estimator", CODED[:9], ids=lambda one: one.name)
@pytest.mark.parametrize("lowest", [0.0, 0.2])
def test_the_authors_rules(estimator, lowest):
    y, p = drawn("spread", 70)
    p = lowest + (1 - lowest) * p
    samples = Samples.of(y, p, lowest)
    n_bins = 8 if estimator.parameter == "sqrt" else int(estimator.parameter)
    # With hard assignment their bins start at 0 whatever the lowest score is.
    expected = [
        coded_error(estimator.family, *one, n_bins, lowest) for one in zip(y, p, strict=True)
    ]
    np.testing.assert_allclose(estimator.measure(samples, samples), expected, atol=1e-12)


def test_exchanged_shares_by_hand():
    # Centres at 1/4 and 3/4: the row at 3/8 gives 3/4 to the upper bin, that at 1/8 nothing.
    samples = Samples.of(np.array([[1.0, 0.0]]), np.array([[0.375, 0.125]]))
    (two_bins,) = (
        replace(one, measure=one.measure.func) for one in CODED if one.name == "convex, code 10"
    )
    assert two_bins.measure(2, samples, samples) == pytest.approx(
        (abs(0.625 * 0.25 - 0.125) + 0.625 * 0.75) / 2
    )


def test_the_authors_class_wise_bandwidth_is_that_of_the_first_class():
    y, p = drawn("spread", 60)
    first, second = Samples.of(y, p), Samples.of(y, np.sqrt(p))
    estimator = ESTIMATORS["density, code silverman"]
    width = silverman(first, (3 / 4) ** -0.2)
    assert estimator.measure(second, first) == nearly(density_error(second, width))


# Mixtures and truths.


def test_the_posterior_is_that_of_the_densities():
    mixture = Mixture.random(3, 2, -1.0, np.random.default_rng(1))
    points, outcome = mixture.draw(50, np.random.default_rng(2))
    density = np.zeros((50, 3))
    for k, (mean, factor) in enumerate(zip(mixture.means, mixture.factors, strict=True)):
        density[:, k % 3] += multivariate_normal(mean, factor.T @ factor).pdf(points)
    expected = density / density.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(mixture.posterior(points), expected, atol=1e-9)
    assert set(outcome) <= {0, 1, 2}


def test_outcomes_are_drawn_with_the_posterior():
    mixture = Mixture.random(2, 2, 0.0, np.random.default_rng(3))
    points, outcome = mixture.draw(40_000, np.random.default_rng(4))
    probability = mixture.posterior(points)[:, 1]
    noise = np.sqrt((probability * (1 - probability)).sum()) / len(probability)
    for chosen in (np.ones(len(probability)), probability, points[:, 0]):
        assert abs(np.mean(chosen * (outcome - probability))) < 4 * noise * np.abs(chosen).max()
    assert points[outcome == 1].mean(axis=0) == pytest.approx(
        mixture.means[1::2].mean(axis=0), abs=0.02
    )


@pytest.mark.parametrize("shift", [0.0, 0.02, 0.1])
def test_truths_of_known_problems(shift):
    rng = np.random.default_rng(6)
    p = rng.uniform(0.2, 0.8, 100_000)
    # The probabilities scatter widely about the score, as those of points do.
    probability = np.clip(p + shift + rng.uniform(-0.15, 0.15, len(p)), 0, 1)
    found = truth_of(PoolProblem(p, probability, np.zeros_like(p), 0.0))
    assert found.value == pytest.approx(shift, abs=2e-3)
    # Where all bins have errors of one sign both ends are the same sum, added up in two ways.
    assert found.low - ROUNDING <= found.value <= found.high + ROUNDING
    assert abs(found.value - shift) < 4 * found.uncertainty < 0.01
    if shift == 0:
        # What many bins say is all noise.
        assert cb.ece(probability, p, n_bins=2000) > 5 * found.value


def test_training_sets_are_shared_by_models_and_pools_by_mixtures():
    pytest.importorskip("sklearn")
    pools = [
        ScoreDistribution.of("text", 2, 2, 0, training, model).pool(50)
        for training, model in ((0, "bayes"), (1, "bayes"), (0, "logistic"))
    ]
    assert all(pool.posterior == nearly(pools[0].posterior) for pool in pools)
    assert not (pools[0].scores == pools[1].scores).any()
    other = ScoreDistribution.of("code", 2, 2, 0, 0, "bayes").pool(50)
    assert not (other.posterior == pools[0].posterior).any()


def test_without_scikit_learn_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.calibration", None)
    with pytest.raises(cb.MissingDependencyError, match=r"pip install 'calibrant\[sklearn\]'"):
        ScoreDistribution.of("text", 2, 2, 0, 0, "bayes")


# The study.


def test_the_whole_study_has_every_score_distribution_and_size():
    *rounds, few = estimating_ece.parts(False)
    cells = [cell for part in rounds for cell in part.cells]
    assert len(cells) == len(set(cells)) == 2 * 45 * 3 * 4
    for part in rounds:
        # Every round goes through all shapes and models, and through most of the mixtures.
        assert len({cell[1:3] for cell in part.cells}) == 9
        assert len({cell[1:4] for cell in part.cells}) == 36
    assert few.name == "truths"
    assert (min(estimating_ece.SIZES), max(estimating_ece.SIZES)) == (30, 500)
    assert len(PUBLISHED) == 15


@pytest.fixture(scope="module")
def run(quickly):
    pytest.importorskip("sklearn")
    return quickly("estimating-ece")


@pytest.fixture(scope="module")
def study(run):
    return ErrorCurves("code", run.tables["curves"])


def test_figure_2_shows_absolute_errors(run):
    ours = {(one.row, one.column): one for one in run.tables["comparisons"]}
    for setting in ("confidence", "classwise"):
        relative, absolute = (
            ours[setting, f"{kind} error, n = 30"] for kind in ("relative", "absolute")
        )
        # The paper says 0.1 of the true value.
        assert relative.ours > 1
        assert relative.note
        assert 0.05 < absolute.ours < 0.25


def test_convex_shares_improve_and_adaptive_bins_alone_do_not(study):
    for setting in ("confidence", "classwise"):
        for count in ("10", "30", "sqrt"):
            assert study.ratio(setting, f"convex {count}", f"legacy {count}", "absolute") < 1
            assert (
                study.ratio(setting, f"adaptive-convex {count}", f"adaptive {count}", "absolute")
                < 1
            )
    assert study.ratio("confidence", "adaptive 30", "legacy 30", "absolute") > 1.1


def test_kernels_win_on_few_rows_and_thirty_bins_lose(study):
    for setting in ("confidence", "classwise"):
        assert study.times_the_best(setting, "density silverman", RIGHT, 30, "absolute") < 1.35
        best = study.best(setting, RIGHT, 30, "absolute")
        assert best.endswith(("sqrt", "silverman", " 0.1"))
        worst = max(RIGHT, key=lambda name: study.value(setting, name, 30, "absolute"))
        assert worst == "adaptive 30"
    # The smooth error, which the paper does not know, is as good or better.
    assert study.times_the_best("confidence", "smooth", ALL, 30, "relative") < 1.1


def test_estimators_come_together_as_rows_grow(study):
    spans = [study.span("confidence", RIGHT, n, "absolute") for n in study.sizes]
    (least, middle, _), (later_least, later_middle, _) = spans
    assert later_middle / later_least < middle / least
    assert later_middle < middle / 2


def test_binned_errors_are_too_large(study):
    for name in RIGHT[:12]:
        assert study.value("confidence", name, 30, "bias") > 0.1
    assert study.value("confidence", "debiased 10", 30, "bias") < study.value(
        "confidence", "adaptive 10", 30, "bias"
    )


def test_the_published_truth_is_too_large(run):
    few = {row.setting: row for row in run.tables["truths"]}
    assert few["confidence"].low <= few["confidence"].high < few["confidence"].published
    # The first points are those of the study's own pool.
    assert few["confidence"].pool == pytest.approx(few["confidence"].low, rel=0.1)


def test_the_page_says_what_it_rests_on(run):
    page = run.page.read_text()
    assert "rests on 8 of 1080 score distributions" in page
    assert "8 of 540 | 2 of 45" in page
    sentences = page.partition("| the paper says")[2].partition("## Figure 2")[0]
    assert sentences.count("| yes |") + sentences.count("| no |") == 9


def test_a_page_is_gathered_from_rounds_or_from_summaries(run, tmp_path, monkeypatch):
    # The figures are those of the run; drawing them again would take seconds.
    monkeypatch.setattr("studies.frame._png", lambda figure: b"")
    folder = run.page.with_suffix("")
    for name in ("round_01_code", "truths"):
        copy2(folder / f"{name}.csv", tmp_path)
    of_rounds = estimating_ece.STUDY.report(estimating_ece.tables_in(tmp_path))
    assert_same_text(of_rounds.text, run.page.read_text())
    again = estimating_ece.gather(folder, out=tmp_path)
    assert_same_text(again.page.read_text(), run.page.read_text())
    assert {file.name for file in again.files} <= {file.name for file in run.files}


def test_rounds_are_measured_by_name(monkeypatch, tmp_path):
    row = estimating_ece.Error(
        *("text", 2, 2, 0, 0, "bayes", "confidence", 30, "smooth"), *[0.5] * 7
    )
    (part,) = [Part("round_01_text", estimating_ece.Error, [("text",)], lambda *_: [row])]
    monkeypatch.setattr(estimating_ece, "parts", lambda quick: [part])
    estimating_ece.measure(["round_01_text"], out=tmp_path)
    assert (tmp_path / "estimating-ece" / "round_01_text.csv").read_bytes() == to_csv([row])
    with pytest.raises(KeyError, match="x"):
        estimating_ece.measure(["x"], out=tmp_path)


# The site, and the table of recommendations.


def test_recommendations_rest_on_the_evidence_of_the_site():
    shipped = files("calibrant.measures").joinpath("data/estimators.csv").read_bytes()
    assert shipped == (DOCS / "estimating-ece" / "evidence.csv").read_bytes()


def test_every_estimator_of_the_table_is_in_the_study():
    assert set(CALLS) <= set(ESTIMATORS)
    assert {one.name for one in PUBLIC} == set(CALLS)
