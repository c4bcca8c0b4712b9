"""What must hold of the canonical calibration error for any data at all."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.data.classes import ClassTable
from calibrant.measures.density import CanonicalError
from tests.tolerances import ROUNDING, nearly

BANDWIDTHS = st.sampled_from([1.0, 0.1, 0.01])


@st.composite
def tables(draw):
    """Probabilities in sixteenths, zeros among them."""
    n_classes, n = draw(st.integers(2, 5)), draw(st.integers(2, 20))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    prob = rng.multinomial(16, rng.dirichlet(np.ones(n_classes), n)) / 16
    return ClassTable(prob, rng.integers(0, n_classes, n), rng.integers(1, 4, n) / 2)


@given(table=tables(), bandwidth=BANDWIDTHS, seed=st.integers(0, 2**32 - 1))
def test_orders_do_not_matter(table, bandwidth, seed):
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(len(table.prob)), rng.permutation(table.n_classes)
    place = np.argsort(columns)
    turned = ClassTable(table.prob[rows][:, columns], place[table.outcome][rows], table.w[rows])
    error = CanonicalError(bandwidth)
    assert error(turned) == pytest.approx(error(table), abs=1e-10)


@given(table=tables(), bandwidth=BANDWIDTHS, scale=st.sampled_from([0.25, 8.0]))
def test_weights_are_relative(table, bandwidth, scale):
    scaled = ClassTable(table.prob, table.outcome, table.w * scale)
    assert CanonicalError(bandwidth)(scaled) == pytest.approx(
        CanonicalError(bandwidth)(table), abs=ROUNDING
    )


@given(table=tables(), bandwidth=BANDWIDTHS)
def test_labels_and_soft_rows_of_0_and_1_agree(table, bandwidth):
    soft = ClassTable(table.prob, np.eye(table.n_classes)[table.outcome], table.w)
    assert CanonicalError(bandwidth)(soft) == nearly(CanonicalError(bandwidth)(table))


@given(table=tables())
def test_between_0_and_1(table):
    assert 0 <= CanonicalError()(table) <= 1 + 1e-12
