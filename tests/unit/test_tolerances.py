"""The checks that allow for rounding let nothing else pass."""

import pytest

import calibrant as cb
from tests.tolerances import assert_nearly_equal, assert_same_text, nearly


def test_rounding_passes():
    assert 0.1 + 0.2 == nearly(0.3)
    assert_nearly_equal({"a": [0.1 + 0.2, None, "p = 0.30"]}, {"a": [0.3, None, "p = 0.31"]})
    assert_same_text("12.5% of 40 rows, P = 1e-05", "12.4% of 40 rows, P = 2e-05")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (0.3 + 1e-9, 0.3),
        (None, 0.3),
        ([0.3], [0.3, 0.3]),
        ({"a": 0.3}, {"b": 0.3}),
        (41, 40),
        (True, False),
        ("41 rows", "40 rows"),
        ("P = 0.25", "P = 0.27"),
        ("P = 0.25", "Q = 0.25"),
        ("0.25 and 0.5", "0.25"),
    ],
)
def test_anything_else_does_not(found, expected):
    with pytest.raises(AssertionError):
        assert_nearly_equal(found, expected)


def test_results_are_of_one_kind():
    test = cb.cumulative_test([0, 1, 1], [0.2, 0.6, 0.7])
    assert_nearly_equal(test, cb.cumulative_test([0, 1, 1], [0.2, 0.6, 0.7]))
    with pytest.raises(AssertionError):
        assert_nearly_equal(cb.estimate("ece", [0, 1, 1], [0.2, 0.6, 0.7], n_resamples=39), test)
