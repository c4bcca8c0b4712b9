"""Point masses: single scores that many rows have, and nothing that only looks like one."""

import json

import numpy as np
import pytest

import calibrant as cb
from calibrant.curves.reliability_view import point_masses
from calibrant.data.classes import one_problem
from calibrant.data.sketch_problem import problem_of
from calibrant.datasets import load_flares, load_rain
from tests.twins.masses import point_masses as slow

FEW = {"n_resamples": 39}


def of_rows(y, p, w=None):
    return point_masses(one_problem(y, p, w, None, None, None))


def of_sketch(y, p, w=None, n_cells=50_400):
    return point_masses(problem_of(cb.Sketch(n_cells).update(y, p, sample_weight=w)))


def outcomes(rng, p):
    return (rng.random(len(p)) < p).astype(float)


def columns(masses):
    return list(zip(masses.score, masses.outcome, masses.share, strict=True))


def test_by_hand():
    p = np.r_[np.full(30, 0.25), np.linspace(0.4, 0.9, 70)]
    y = np.r_[np.ones(12), np.zeros(88)]
    found = of_rows(y, p)
    assert columns(found) == [(0.25, 0.4, 0.3)]
    assert not found.is_all
    few = of_rows([0, 1, 1, 1, 0, 0, 0, 1, 0, 1], [0.2] * 4 + [0.7] * 6)
    assert columns(few) == [(0.2, 0.75, 0.4), (0.7, pytest.approx(1 / 3), 0.6)]
    assert few.is_all
    # One row fewer than thirty.
    assert not len(of_rows(y[1:], p[1:]))
    # Fewer than five rows a score, on average.
    assert not len(of_rows([0, 1, 1, 0], [0.2, 0.7, 0.2, 0.7]))


def mixed(rng, n):
    p = rng.random(n)
    p[rng.random(n) < 0.3], p[rng.random(n) < 0.1] = 0, 0.617
    return p


SHAPES = {
    "mixed": mixed,
    "tenths": lambda rng, n: rng.random(n).round(1),
    "twentieths": lambda rng, n: (20 * rng.random(n)).round() / 20,
    "narrow": lambda rng, n: 1e-6 * mixed(rng, n),
    "neighbours": lambda rng, n: np.where(rng.random(n) < 0.2, 0.5, 0.50001 * rng.random(n)),
    "cut": lambda rng, n: np.clip(rng.normal(0.5, 0.25, n), 0.2, 0.8),
    "rounded": lambda rng, n: rng.beta(80, 40, n).round(2),
    "uniform": lambda rng, n: rng.random(n),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_rows_agree_with_the_definition(shape, weighted):
    rng = np.random.default_rng(1)
    for n in (30, 300, 3000):
        p = SHAPES[shape](rng, n)
        y, w = outcomes(rng, p), rng.uniform(0.5, 2, n) if weighted else None
        found, (expected, is_all) = of_rows(y, p, w), slow(y, p, w)
        assert np.allclose(columns(found), expected)
        assert found.is_all == is_all


@pytest.mark.parametrize("shape", ["mixed", "tenths", "cut", "rounded", "uniform"])
def test_sketches_know_them_too(shape):
    rng = np.random.default_rng(2)
    p = SHAPES[shape](rng, 3000)
    y, w = outcomes(rng, p), rng.uniform(0.5, 2, 3000)
    for weights in (None, w):
        rows, cells = of_rows(y, p, weights), of_sketch(y, p, weights)
        assert rows.is_all == cells.is_all
        assert np.allclose(columns(rows), columns(cells), atol=1e-3)


# Scores all of which are distinct, however close to each other.
DISTINCT = {
    "powers": lambda rng, n: 10 ** (-8 * rng.random(n)),
    "near one": lambda rng, n: 1 - 10 ** (-8 * rng.random(n)),
    "beta": lambda rng, n: rng.beta(0.05, 0.3, n),
    "bathtub": lambda rng, n: rng.beta(0.2, 0.2, n),
    "rare": lambda rng, n: rng.beta(1, 50, n),
    "peaked": lambda rng, n: rng.beta(80, 40, n),
    "tiny": lambda rng, n: 1e-5 * rng.random(n),
}


@pytest.mark.parametrize("shape", DISTINCT)
def test_distinct_scores_have_none(shape):
    rng = np.random.default_rng(0)
    for n in (60, 1000, 20_000):
        p = DISTINCT[shape](rng, n)
        p = p[(p > 0) & (p < 1)]
        y = outcomes(rng, p)
        found = [of_rows(y, p), of_sketch(y, p)]
        if shape != "tiny":
            # Within a hundredth of a coarse cell scores cannot be told apart.
            found.append(of_sketch(y, p, n_cells=1000))
        assert not any(len(one) or one.is_all for one in found)


@pytest.mark.parametrize("n", [20, 60, 200, 1000, 20_000])
def test_hundredths_have_none(n):
    rng = np.random.default_rng(1)
    for _ in range(20):
        p = rng.random(n).round(2)
        found = of_rows(outcomes(rng, p), p)
        assert found.is_all or not len(found)


@pytest.mark.parametrize("read", [of_rows, of_sketch])
def test_scores_rounded_this_way_and_that_are_one(read):
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    p[:80], p[80:160] = 0.3, np.nextafter(0.3, 0)
    y = outcomes(rng, p)
    found = read(y, p)
    assert found.score == pytest.approx([0.3], abs=1e-9)
    assert found.outcome == pytest.approx([y[:160].mean()])
    assert found.share == pytest.approx([0.08])


def test_a_mass_at_the_edge_of_a_coarse_cell_is_told_from_what_lies_beside_it():
    rng = np.random.default_rng(0)
    p = rng.beta(80, 40, 20_000)
    p[:2000] = 2 / 3
    found = of_sketch(outcomes(rng, p), p)
    assert found.share == pytest.approx([0.1], abs=1e-3)


def test_bundled_data():
    assert not len(of_rows(*load_flares()))
    rain = of_rows(*load_rain())
    assert rain.is_all
    assert rain.share.sum() == pytest.approx(1)


def test_an_assessment_of_many_scores_keeps_them_where_they_are():
    rng = np.random.default_rng(0)
    p = np.r_[0.01 * rng.random(20_000), np.full(2000, 0.5), rng.uniform(0.6, 0.99, 12)]
    y = outcomes(rng, p)
    share, outcome = (p == 0.5).mean(), y[p == 0.5].mean()
    for found in (cb.assess(y, p, **FEW), cb.assess(cb.Sketch().update(y, p), **FEW)):
        assert np.allclose(columns(found.masses), [(0.5, outcome, share)], atol=1e-6)
    plain = json.loads(json.dumps(found.to_dict()["masses"], allow_nan=False))
    assert set(plain) == {"score", "outcome", "share", "is_all"}
    assert plain["score"] == pytest.approx([0.5])
    assert plain["is_all"] is False
