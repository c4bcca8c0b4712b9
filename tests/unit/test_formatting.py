"""Numbers keep the digits that mean something, names their beginning and their end."""

import math

import pytest

from calibrant import assess, cumulative_test
from calibrant.datasets import load_flares
from calibrant.formatting import (
    UNKNOWN,
    count,
    counted,
    decimals,
    fixed,
    group_name,
    p_statement,
    p_value,
    percent,
    plain_p_value,
    proportion,
    short_count,
    shortened,
    significant,
)


def plain(text):
    return text.replace("\N{NO-BREAK SPACE}", " ").replace("\N{NARROW NO-BREAK SPACE}", " ")


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (fixed(0.05972, 3), "0.060"),
        (fixed(-0.05972, 3), "−0.060"),
        (fixed(-0.0001, 2), "0.00"),
        (significant(0.123456), "0.1235"),
        (significant(-1.5e-7, 2), "−1.5 × 10⁻⁷"),
        (significant(1e20), "10²⁰"),
        (significant(0.0), "0"),
        (proportion(0.25), "0.250"),
        (proportion(0.00123456), "0.00123"),
        (count(999), "999"),
        (count(1234567), "1,234,567"),
        (p_value(0.04999), "0.05"),
        (p_value(0.00099), "0.00099"),
        (p_value(1.26e-7), "1.3 × 10⁻⁷"),
        (p_value(5e-324), "< 10⁻³⁰⁰"),
        (p_value(1 / 1001, is_bound=True), "≤ 0.001"),
        (p_value(1e-5, is_bound=True), "≤ 10⁻⁵"),
        (p_statement(0.0312), "P = 0.031"),
        (p_statement(1 / 1001, is_bound=True), "P ≤ 0.001"),
        (percent(0.975), "97.5%"),
        (counted(1, "row"), "1 row"),
        (counted(0, "row"), "0 rows"),
    ],
)
def test_as_printed(number, text):
    assert plain(number) == text


def test_the_value_is_kept_in_full():
    assert fixed(0.123456789, 2).value == 0.123456789
    assert p_value(5e-324).value == 5e-324
    for unknown in (fixed(math.nan, 3), significant(math.inf), p_value(math.nan)):
        assert unknown is UNKNOWN


@pytest.mark.parametrize(
    ("low", "high", "digits"),
    [(0.04, 0.074, 3), (0.0, 0.5, 2), (0.01, 0.0102, 5), (0.2, 0.2, 4), (math.nan, 1, 4)],
)
def test_an_interval_shows_two_digits_of_its_width(low, high, digits):
    assert decimals(low, high) == digits
    assert decimals(low, high, minimum=5) == 5


@pytest.mark.parametrize(
    ("n", "text"),
    [(0, "0"), (999, "999"), (1000, "1k"), (99_400, "99k"), (123_456, "123k"), (2_500_000, "2.5M")],
)
def test_short_counts(n, text):
    assert short_count(n) == text


@pytest.mark.parametrize(
    ("value", "is_bound", "words"),
    [
        (0.0312, False, "= 0.031"),
        (1.26e-7, False, "= 1.3e-07"),
        (1 / 1001, True, "<= 0.001"),
        (1 / 1000, True, "<= 0.001"),
        (1 / 701, True, "<= 0.0015"),  # 0.00143: a bound is not rounded down
        (5e-324, False, "< 1e-300"),
    ],
)
def test_sign_and_number_of_a_p_value(value, is_bound, words):
    assert " ".join(plain_p_value(value, is_bound=is_bound)) == words


def test_the_minimum_of_simulated_samples_is_known_as_such():
    flares = load_flares()
    few = cumulative_test(*flares, method="monte_carlo", n_resamples=99)
    assert (few.p_value, few.is_least) == (0.01, True)
    assert "p <= 0.01" in repr(few)
    assert not cumulative_test(*flares).is_least
    calm = cumulative_test([0, 1], [0.5, 0.5], method="monte_carlo", n_resamples=99)
    assert not calm.is_least


def test_a_verdict_says_so():
    assert "(P < 0.001)" in str(assess(*load_flares()).verdict)


@pytest.mark.parametrize(
    ("most", "expected"),
    [(10, "abcdefghij"), (9, "abcd…ghij"), (4, "ab…j"), (1, "…"), (0, "")],
)
def test_shortened(most, expected):
    assert shortened("abcdefghij", most) == expected
    assert len(shortened("abcdefghij", most, ellipsis="...")) <= most


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["web", " web", "web ", "w  eb"], ["web", "' web'", "'web '", "'w  eb'"]),
        ([None, "(none)", "", "-"], ["(none)", "'(none)'", "''", "-"]),
        ([("a", None), ("a", 1)], ["a, (none)", "a, 1"]),
    ],
)
def test_groups_are_told_apart(labels, expected):
    assert [group_name(one) for one in labels] == expected


def test_a_level_near_1_is_not_100_percent():
    levels = (0.95, 0.07, 0.9999999, 1.0)
    assert [percent(one) for one in levels] == ["95%", "7%", "99.99999%", "100%"]


def test_a_name_is_one_line():
    assert shortened("the\n  north") == "the north"


def test_wide_characters_count_twice():
    cells = pytest.importorskip("rich.cells")
    assert shortened("東京都千代田", 7, width=cells.cell_len) == "東京…田"
