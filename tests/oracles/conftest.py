"""What tests of compiled code share."""

from __future__ import annotations

import pytest

from calibrant.numerics import passes


@pytest.fixture
def compiled(monkeypatch):
    """Take the compiled passes for any number of rows, on several threads."""
    monkeypatch.setattr(passes, "MIN_ROWS", 1)
    monkeypatch.setattr(passes, "_MIN_ROWS_PER_THREAD", 1000)
