"""Public values on known data: no change of the code may move them unnoticed."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.contract.cases import VALUES, cases, numbers

CASES = cases()
EXPECTED = json.loads(VALUES.read_text())


def test_every_case_has_its_value():
    assert set(CASES) == set(EXPECTED)


@pytest.mark.parametrize("name", CASES)
def test_value(name):
    found = numbers(CASES[name]())
    assert set(EXPECTED[name]) <= set(found)
    for field, expected in EXPECTED[name].items():
        assert len(found[field]) == len(expected), field
        # Sums in another order, and searches that stop 1e-10 apart.
        np.testing.assert_allclose(found[field], expected, rtol=1e-9, atol=1e-9, err_msg=field)
