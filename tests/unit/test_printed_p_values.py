"""A P-value in print says when it is a bound and not a value."""

import pytest

from calibrant import assess, cumulative_test
from calibrant.datasets import load_flares
from calibrant.results.p_values import printed_p_value


@pytest.mark.parametrize(
    ("value", "is_least", "words"),
    [
        (0.0312, False, "= 0.031"),
        (1.26e-7, False, "= 1.3e-07"),
        (1 / 1001, True, "<= 0.001"),
        (1 / 1000, True, "<= 0.001"),
        (1 / 701, True, "<= 0.0015"),  # 0.00143: a bound is not rounded down
        (5e-324, False, "< 1e-300"),
    ],
)
def test_sign_and_number(value, is_least, words):
    assert " ".join(printed_p_value(value, is_least=is_least)) == words


def test_the_least_of_simulated_samples_is_known_as_such():
    flares = load_flares()
    few = cumulative_test(*flares, method="monte_carlo", n_resamples=99)
    assert (few.p_value, few.is_least) == (0.01, True)
    assert "p <= 0.01" in repr(few)
    assert not cumulative_test(*flares).is_least
    calm = cumulative_test([0, 1], [0.5, 0.5], method="monte_carlo", n_resamples=99)
    assert not calm.is_least


def test_a_verdict_says_so():
    assert str(assess(*load_flares()).verdict).startswith("Miscalibration detected (P <= 0.001).")
