"""Numbers keep the digits that count."""

import math

import pytest

from calibrant.report.numbers import UNKNOWN, count, decimals, figures, fixed, p_value


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (fixed(0.05972, 3), "0.060"),
        (fixed(-0.05972, 3), "−0.060"),
        (fixed(-0.0001, 2), "0.00"),
        (figures(0.123456), "0.1235"),
        (figures(-1.5e-7, 2), "−1.5 × 10⁻⁷"),
        (figures(0.0), "0"),
        (count(9999), "9999"),
        (count(1234567), "1 234 567"),
        (p_value(0.04999), "0.05"),
        (p_value(0.00099), "0.00099"),
        (p_value(1.26e-7), "1.3 × 10⁻⁷"),
        (p_value(5e-324), "< 10⁻³⁰⁰"),
        (p_value(1 / 1001, is_least=True), "≤ 0.001"),
        (p_value(1e-5, is_least=True), "≤ 10⁻⁵"),
    ],
)
def test_as_written(number, text):
    plain = number.text.replace("\N{NO-BREAK SPACE}", " ").replace("\N{NARROW NO-BREAK SPACE}", " ")
    assert plain == text


def test_the_value_is_kept_in_full():
    assert fixed(0.123456789, 2).value == 0.123456789
    assert fixed(math.nan, 3) == figures(math.inf) == UNKNOWN


@pytest.mark.parametrize(
    ("low", "high", "digits"),
    [(0.04, 0.074, 3), (0.0, 0.5, 2), (0.01, 0.0102, 5), (0.2, 0.2, 4), (math.nan, 1, 4)],
)
def test_an_interval_shows_two_figures_of_its_width(low, high, digits):
    assert decimals(low, high) == digits
