"""The slow twins themselves, on cases computed by hand."""

import math
from fractions import Fraction

import pytest

from tests.twins import brownian
from tests.twins import cumulative as twin


def test_walk_by_hand():
    # r = .75, -.5, -.25: positions .25, 1/12, 0 after division by 3
    y, p = [1, 0, 0], [0.25, 0.5, 0.25]
    assert twin.walk(y, p) == [0, Fraction(1, 6), 0]
    assert twin.mad(y, p) == twin.span(y, p) == Fraction(1, 6)


def test_range_counts_both_sides_and_the_origin():
    y, p = [0, 1, 1], [0.5, 0.625, 0.75]
    # -1/2, -1/8, +1/8, over 3: range from -1/6 to 1/24
    assert twin.span(y, p) == Fraction(1, 6) + Fraction(1, 24)
    assert twin.mad(y, p) == Fraction(1, 6)
    assert twin.largest_interval(y, p) == twin.span(y, p)
    # All positions positive: the origin is the lowest point.
    assert twin.span([1], [0.5]) == Fraction(1, 2)


def test_weights_by_hand():
    # W = 4: steps 3 * (1 - .5) = 1.5, 1 * (0 - .75) = -.75
    assert twin.walk([1, 0], [0.5, 0.75], [3, 1]) == [0, Fraction(3, 8), Fraction(3, 16)]
    assert twin.sigma([0.5, 0.5], [3, 1]) == pytest.approx(math.sqrt(10 / 4) / 4)


def test_exact_p_value_by_hand():
    # One row, p = .25, y = 1: |1 - .25| = .75 beats |0 - .25|: probability .25.
    assert twin.exact_p_value(twin.mad, [1], [0.25]) == pytest.approx(0.25)
    assert twin.exact_p_value(twin.mad, [0], [0.25]) == 1.0


def test_cells_by_hand():
    # Group scores .25 and .5; .375 is a draw and goes down; .125 and .75 lie outside.
    p = [0.125, 0.25, 0.375, 0.4375, 0.5, 0.75]
    member = [False, True, False, False, True, False]
    assert twin.cells(p, member) == {0.25: [1, 2], 0.5: [3, 4]}
    # Residuals 3/4, -3/8 and 9/16, -1/2: steps of half their differences, over the weight 2.
    y = [1, 1, 0, 1, 0, 1]
    assert twin.group_walk(y, p, member) == [0, Fraction(9, 32), Fraction(9, 32) - Fraction(17, 64)]
    # Each step is up or down with equal chance.
    assert twin.group_sigma(y, p, member) == pytest.approx(math.hypot(9 / 32, 17 / 64))
    # The range is 9/32 for a walk that turns back and more for one that goes on.
    assert twin.group_p_value(y, p, member) == 1.0


def test_brownian_series_against_the_normal_tail():
    # Far out P(max|B| > x) = 4 Q(x) and P(range > x) = 8 Q(x), with Q from the standard library.
    tail = math.erfc(8 / math.sqrt(2)) / 2
    assert brownian.sf(brownian.max_cdf, 8) == pytest.approx(4 * tail, rel=1e-12)
    assert brownian.sf(brownian.range_cdf, 8) == pytest.approx(8 * tail, rel=1e-12)
