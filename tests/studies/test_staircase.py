"""The staircase example against the numbers printed with it."""

import random

import numpy as np
import pytest

from studies.staircase import cantor_staircase
from tests.tolerances import ROUNDING


def ecce(y_true, y_prob):
    deviation = np.concatenate(([0.0], np.cumsum(y_true - y_prob))) / len(y_prob)
    sigma = np.sqrt((y_prob * (1 - y_prob)).sum()) / len(y_prob)
    return np.abs(deviation).max(), np.ptp(deviation), sigma


def four_digits(value):
    return float(f"{value:.4g}")


def test_figure_7_square_rooted_scores():
    mad, range_, sigma = ecce(*cantor_staircase(32768, "sqrt"))
    assert [four_digits(v) for v in (mad, range_)] == [0.01243, 0.02291]
    assert [four_digits(v) for v in (mad / sigma, range_ / sigma)] == [5.512, 10.16]


@pytest.mark.parametrize(
    ("transform", "values"),
    [
        ("identity", (0.01086, 0.02158, 4.817, 9.568)),
        ("square", (0.01099, 0.01616, 5.446, 8.013)),
    ],
)
def test_other_transforms_keep_their_values(transform, values):
    # The paper prints no value for these two: computed once from its definition.
    mad, range_, sigma = ecce(*cantor_staircase(32768, transform))
    assert tuple(four_digits(v) for v in (mad, range_, mad / sigma, range_ / sigma)) == values


def slow_probabilities(n):
    """P(y = 1) for equispaced scores, from the definition, digit by digit."""
    stairs = []
    for j in range(n):
        octal = f"{round(j * 8**7 / n):07o}"
        stairs.append(int("".join("0" if digit == "0" else "1" for digit in octal), 2) / 127)
    stairs.sort()
    probabilities = [(j + 0.5) / n + stairs[j] - 1 + np.exp(-(np.e**2) * j / n) for j in range(n)]
    return np.clip(probabilities, 0, 1)


@pytest.mark.parametrize("n", [1, 7, 64, 1000])
def test_probabilities_follow_the_definition(n):
    assert cantor_staircase(n).true_prob == pytest.approx(slow_probabilities(n), abs=ROUNDING)


def test_scores_ascend_and_probabilities_lie_in_the_unit_interval():
    for transform in ("identity", "square", "sqrt"):
        staircase = cantor_staircase(4096, transform)
        assert (np.diff(staircase.y_prob) > 0).all()
        assert staircase.true_prob.min() >= 0
        assert staircase.true_prob.max() <= 1
        assert not staircase.true_prob.flags.writeable


def test_the_global_generator_is_left_alone():
    random.seed(5)
    state = random.getstate()
    cantor_staircase(100)
    assert random.getstate() == state
