"""What must hold of the canonical calibration error for any data at all."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant import density_ece
from tests.tolerances import ROUNDING, nearly

BANDWIDTHS = st.sampled_from([1.0, 0.1, 0.01])


@st.composite
def tables(draw):
    """Probabilities in sixteenths, zeros among them."""
    n_classes, n = draw(st.integers(2, 5)), draw(st.integers(2, 20))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    prob = rng.multinomial(16, rng.dirichlet(np.ones(n_classes), n)) / 16
    return rng.integers(0, n_classes, n), prob, rng.integers(1, 4, n) / 2


def canonical(y, prob, w, bandwidth="silverman"):
    return density_ece(y, prob, bandwidth=bandwidth, sample_weight=w, multiclass="canonical")


@given(table=tables(), bandwidth=BANDWIDTHS, seed=st.integers(0, 2**32 - 1))
def test_orders_do_not_matter(table, bandwidth, seed):
    y, prob, w = table
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(len(y)), rng.permutation(prob.shape[1])
    permuted = np.argsort(columns)[y][rows], prob[rows][:, columns], w[rows]
    expected = canonical(*table, bandwidth)
    assert canonical(*permuted, bandwidth) == pytest.approx(expected, abs=1e-10)


@given(table=tables(), bandwidth=BANDWIDTHS, scale=st.sampled_from([0.25, 8.0]))
def test_weights_are_relative(table, bandwidth, scale):
    y, prob, w = table
    expected = canonical(y, prob, w, bandwidth)
    assert canonical(y, prob, w * scale, bandwidth) == pytest.approx(expected, abs=ROUNDING)


@given(table=tables(), bandwidth=BANDWIDTHS)
def test_labels_and_soft_rows_of_0_and_1_agree(table, bandwidth):
    y, prob, w = table
    soft = np.eye(prob.shape[1])[y]
    assert canonical(soft, prob, w, bandwidth) == nearly(canonical(*table, bandwidth))


@given(table=tables())
def test_between_0_and_1(table):
    assert 0 <= canonical(*table) <= 1 + 1e-12
