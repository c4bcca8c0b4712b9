"""Rows that compiled passes check while they add them up, against those checked beforehand."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

import calibrant as cb
from calibrant import CalibrantError
from calibrant.data import rows
from calibrant.data.binning import UniformBins
from calibrant.data.rows import read_sample
from calibrant.measures import smooth
from calibrant.recalibration.search import with_predictions
from tests.compiled_or_not import N, in_numpy, some_rows

pytest.importorskip("numba")

LOOKING = (
    cb.ece,
    cb.smooth_ece,
    cb.ecce_mad,
    cb.density_ece,
    cb.brier_score,
    cb.bin_table,
    cb.reliability_curve,
    cb.assess,
)


def sentence(look, y, p):
    with pytest.raises(CalibrantError) as refusal:
        look(y, p)
    return str(refusal.value)


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("look", LOOKING, ids=lambda look: look.__name__)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1.5, -0.25, -1e-17, 1 + 1e-7])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bad_scores_are_refused(look, bad, dtype):
    y, p = some_rows("continuous")
    p = p.astype(dtype)
    p[1234] = bad
    said = sentence(look, y, p)
    assert "1234" in said
    assert said == in_numpy(sentence, look, y, p)


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("look", LOOKING, ids=lambda look: look.__name__)
@pytest.mark.parametrize("bad", [np.nan, -np.inf, 2.0, -1.0, 1.5])
def test_bad_outcomes_are_refused(look, bad):
    y, p = some_rows("continuous")
    for dtype in (np.float64, np.int8) if bad in (2, -1) else (np.float64,):
        outcomes = y.astype(dtype)
        outcomes[2345] = bad
        assert sentence(look, outcomes, p) == in_numpy(sentence, look, outcomes, p)


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("look", LOOKING, ids=lambda look: look.__name__)
def test_swapped_arguments_are_recognised(look):
    y, p = some_rows("continuous")
    assert "look swapped" in sentence(look, p, y.astype(float))


@pytest.mark.usefixtures("compiled")
def test_a_bad_score_among_those_seen_first(monkeypatch):
    monkeypatch.setattr(smooth, "_MANY", 1000)
    monkeypatch.setattr(rows, "_RUN_ROWS", 64)
    monkeypatch.setattr(rows, "_MIN_RUNS", 4)
    y, p = some_rows("continuous")
    for place in (3, N - 1):
        wrong = p.copy()
        wrong[place] = np.nan
        assert f"index {place}:" in sentence(cb.smooth_ece, y, wrong)
    assert cb.smooth_ece(y, p) == pytest.approx(in_numpy(cb.smooth_ece, y, p), abs=1e-12)


@pytest.mark.usefixtures("compiled")
def test_rows_that_are_checked_late():
    y, p = some_rows("tenths")
    late = read_sample(y, p)
    assert not late.is_validated
    assert read_sample(y, p, sample_weight=np.ones(N)).is_validated
    for other in (late.rows, with_predictions(late, p)):
        assert other.n == N
        assert other.p.tolist() == p.tolist()
        assert other.y.tolist() == y.tolist()
    assert late.pooled.score.tolist() == sorted(set(p))
    wrong = read_sample(y, np.where(p > 0.9, 1.25, p))
    assert wrong.n == N
    for ask in (
        lambda *_: wrong.rows,
        lambda *_: wrong.spectrum(0.1, "residual"),
        lambda *_: wrong.totals(UniformBins.of(7), "residual"),
        lambda *_: wrong.columns(),
        lambda *_: wrong.is_soft,
        lambda *_: wrong.take(np.arange(3)),
    ):
        assert "1.25" in sentence(ask, y, p)


@pytest.mark.usefixtures("compiled")
def test_predictions_of_our_own_are_not_checked():
    # Soft labels and predictions of 0 and 1, which would be refused as swapped if given.
    _, p = some_rows("continuous")
    late = read_sample(p, p)
    assert not late.is_validated
    hard = (p > 0.5).astype(float)
    assert with_predictions(late, hard).squared_error() == pytest.approx(((hard - p) ** 2).sum())


@pytest.mark.usefixtures("compiled")
def test_samples_are_freed_with_their_last_use():
    late = read_sample(*some_rows("continuous"))
    known = weakref.ref(late)
    assert late.rows.pooled.rows.sum() == N
    del late
    assert known() is None
