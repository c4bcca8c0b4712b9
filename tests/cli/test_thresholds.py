"""Thresholds: the grammar of --fail-if, and the names it knows."""

import pytest

import calibrant as cb
from calibrant import by_group
from calibrant.cli.measure_commands import (
    GROUPS,
    Threshold,
    group_numbers,
    numbers_of,
    read_thresholds,
    whole,
)
from calibrant.datasets import load_rain


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("smooth_ece.high > 0.05", ("smooth_ece.high", ">", 0.05)),
        ("smooth_ece.high>0.05", ("smooth_ece.high", ">", 0.05)),
        ("  ece >= 1e-2 ", ("ece.value", ">=", 0.01)),
        ("slope.low<.9", ("slope.low", "<", 0.9)),
        ("bias.value <= -0.1", ("bias.value", "<=", -0.1)),
        ("n < 100", ("n.value", "<", 100.0)),
    ],
)
def test_what_can_be_written(text, expected):
    assert Threshold.read(text, whole()) == Threshold(*expected)


@pytest.mark.parametrize(
    ("sign", "held"), [(">", [False, False, True]), (">=", [False, True, True]),
                       ("<", [True, False, False]), ("<=", [True, True, False])]
)  # fmt: skip
def test_signs(sign, held):
    limit = Threshold("ece.value", sign, 0.5)
    assert [limit.holds({"ece.value": value}) for value in (0.4, 0.5, 0.6)] == held


def parts(names):
    """List all that can be asked."""
    with_interval, plain = names
    known = ("value", "low", "high", "bias_corrected")
    ends = [f"{name}.{part}" for name in with_interval for part in known]
    return sorted([*ends, *(f"{name}.value" for name in plain)])


def test_every_name_is_known_of_an_assessment():
    y, p = load_rain()
    found = cb.assess(y, p, n_resamples=39, threshold=0.5)
    assert sorted(numbers_of(found)) == parts(whole())


def test_every_name_is_known_of_a_group():
    y, p = load_rain()
    (row,) = by_group(y, p, ["all"] * len(y), n_resamples=39)
    assert sorted(group_numbers(row)) == parts(GROUPS)


def test_none_given():
    assert read_thresholds(None, 0.01, in_groups=False) == []
