"""Cumulative errors against other libraries, away from what they do differently with ties."""

import numpy as np
import pytest

from calibrant import cumulative_test, ecce_mad, ecce_r, spiegelhalter_test
from tests.tolerances import ROUNDING, nearly

RNG = np.random.default_rng(12)
N = 5000
P = RNG.beta(0.7, 0.9, N)
Y = (RNG.random(N) < P**1.2).astype(int)
W = RNG.exponential(1, N) + 0.1
WEIGHTS = pytest.mark.parametrize("weight", [None, W], ids=["unweighted", "weighted"])


@WEIGHTS
def test_probcal(weight):
    metrics = pytest.importorskip("probcal.metrics")
    theirs = metrics.ecce(Y, P, sample_weight=weight)
    assert ecce_mad(Y, P, sample_weight=weight) == pytest.approx(theirs.stat_max, abs=ROUNDING)
    # It, too, takes tied scores as one step, but moves 0 and 1 inwards by a hair.
    tied = np.round(P, 2)
    theirs = metrics.ecce(Y, tied, sample_weight=weight)
    assert ecce_mad(Y, tied, sample_weight=weight) == pytest.approx(theirs.stat_max, abs=1e-12)


def test_spiegelhalter_of_probcal():
    metrics = pytest.importorskip("probcal.metrics")
    theirs = metrics.spiegelhalter_z(Y, P)
    ours = spiegelhalter_test(Y, P)
    assert ours.normalized == pytest.approx(theirs.z, abs=1e-12)
    assert ours.p_value == pytest.approx(theirs.p_value, rel=1e-9)


@WEIGHTS
def test_mcgrad(weight):
    metrics = pytest.importorskip("mcgrad.metrics")
    ours = cumulative_test(Y, P, sample_weight=weight)
    assert ecce_r(Y, P, sample_weight=weight) == pytest.approx(
        metrics.ecce(Y, P, weight), abs=ROUNDING
    )
    assert ours.normalized == pytest.approx(metrics.ecce_sigma(Y, P, weight), rel=ROUNDING)
    assert ours.p_value == pytest.approx(metrics.ecce_pvalue(Y, P, weight), abs=ROUNDING)


def test_row_order_changes_mcgrad_at_ties_but_not_us():
    tied = np.round(P, 1)
    order = np.lexsort((Y, tied))
    turned = order[::-1]
    assert ecce_r(Y[order], tied[order]) == nearly(ecce_r(Y[turned], tied[turned]))
    metrics = pytest.importorskip("mcgrad.metrics")
    up, down = (metrics.ecce(Y[o], tied[o]) for o in (order, turned))
    assert abs(up - down) > 1e-3
