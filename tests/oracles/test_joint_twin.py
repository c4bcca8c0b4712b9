"""The joint test against its definition, computed slowly."""

import numpy as np
import pytest

from calibrant import calibration_test
from calibrant.inference.joint_test import PARTS, minimum_rank
from tests.twins import joint

FEW = 39


def data(kind, n, rng):
    """Return outcomes, scores and weights."""
    p = {
        "uniform": lambda: rng.random(n),
        "tenths": lambda: rng.integers(0, 11, n) / 10,
        "rare": lambda: rng.beta(1, 40, n),
        "certain": lambda: rng.choice([0.0, 0.3, 0.31, 1.0], n),
        "one score": lambda: np.full(n, 0.4),
    }[kind]()
    return (rng.random(n) < p).astype(float), p


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["uniform", "tenths", "rare", "certain", "one score"])
@pytest.mark.parametrize("n", [3, 60, 250])
def test_statistics_are_those_of_the_definition(kind, n, weighted):
    rng = np.random.default_rng([n, weighted])
    y, p = data(kind, n, rng)
    w = rng.exponential(1, n) if weighted else None
    if not ((p > 0) & (p < 1)).any():
        pytest.skip("no noise")
    found = calibration_test(y, p, sample_weight=w, n_resamples=FEW)
    expected = joint.statistics(y, p, np.ones(n) if w is None else w)
    assert [part.name for part in found.parts] == list(PARTS)
    # Sums over the same terms in another order; statistics are rounded to nine decimals.
    assert [part.statistic for part in found.parts] == pytest.approx(expected, rel=1e-6, abs=1e-8)


def test_the_rank_of_the_minimum():
    rng = np.random.default_rng(5)
    for first in (0.0, 1.5, 4.0):
        values = rng.standard_normal((60, 3)) @ rng.standard_normal((3, 3))
        values[0] += first
        ranks, p_value = minimum_rank(values)
        assert p_value == joint.minimum_rank(values)
        assert ranks.tolist() == [np.mean(column >= column[0]) for column in values.T]


def test_the_rank_of_the_minimum_by_hand():
    # Ranks of the first sample: 1 of 4 and 4 of 4; two others hold a first rank, one of them in the
    # second column by less, in standard deviations, than the first sample exceeds the others.
    values = np.array([[9.0, 0.0], [1.0, 3.0], [0.0, 2.0], [0.5, 1.0]])
    ranks, p_value = minimum_rank(values)
    assert ranks.tolist() == [0.25, 1.0]
    assert p_value == 0.25
    ranks, p_value = minimum_rank(values[[1, 0, 2, 3]])
    assert ranks.tolist() == [0.5, 0.25]
    assert p_value == 0.5
    # All alike: the largest P-value.
    assert minimum_rank(np.ones((4, 2)))[1] == 1.0
