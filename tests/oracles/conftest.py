"""What tests of compiled code share."""

from __future__ import annotations

import pytest

from calibrant.numerics import compiled_sums


@pytest.fixture
def compiled(monkeypatch):
    """Take the compiled passes for any number of rows, on several threads."""
    monkeypatch.setattr(compiled_sums, "MIN_ROWS", 1)
    monkeypatch.setattr(compiled_sums, "_MIN_ROWS_PER_THREAD", 1000)
