"""How far apart numbers may be that differ by rounding alone, and checks that allow for it.

Processors, BLAS builds and numbers of threads add up in different orders, round a product and a sum
once or twice, and take logarithms and powers to different last bits. So numbers that were computed
in two ways are equal only up to rounding, and so are two results made of them.
"""

import re

import pytest

# A sum of 1e5 terms of size 1, each rounded by 1.1e-16, is off by about 3e-14 of their number if
# errors are independent, whatever the order. Of numbers of size 1, or relative to their size.
ROUNDING = 1e-12

# 0.25, -3e-5, 12%: what is printed of a number that was computed, as opposed to counted.
_PRINTED = re.compile(r"\d+\.\d+(?:e[-+]?\d+)?|\d+(?:e[-+]?\d+|(?=%))")


def nearly(expected):
    """Return what equals `expected` and whatever differs from it by rounding."""
    return pytest.approx(expected, rel=ROUNDING, abs=ROUNDING, nan_ok=True)


def assert_nearly_equal(found, expected):
    """Check that two results, or lists and dictionaries of plain values, differ by rounding."""
    if hasattr(expected, "to_dict"):
        assert type(found) is type(expected)
        found, expected = found.to_dict(), expected.to_dict()
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            assert_nearly_equal(found[name], value)
    elif isinstance(expected, list | tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_nearly_equal(one, other)
    elif isinstance(expected, float):
        assert found == nearly(expected)
    elif isinstance(expected, str):
        assert_same_text(found, expected)
    else:
        assert found == expected


def assert_same_text(found, expected):
    """Check that two texts are the same, but for last digits of numbers, which rounding moves."""
    assert _PRINTED.sub("#", found) == _PRINTED.sub("#", expected)
    for one, other in zip(_PRINTED.findall(found), _PRINTED.findall(expected), strict=True):
        unit = max(_last_digit(one), _last_digit(other))
        assert float(one) == pytest.approx(float(other), rel=0, abs=1.001 * unit)


def _last_digit(number):
    """Return what 1 in the last digit of a printed number is worth."""
    digits, _, power = number.partition("e")
    return 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))
