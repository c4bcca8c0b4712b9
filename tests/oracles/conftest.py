"""What tests of compiled code share."""

from __future__ import annotations

import pytest

from calibrant.compiled import passes


@pytest.fixture
def compiled(monkeypatch):
    """Take the compiled passes for any number of rows, in several stretches."""
    monkeypatch.setattr(passes, "is_loaded", lambda: True)
    monkeypatch.setattr(passes, "_WORTH_CALLING", 1)
    monkeypatch.setattr(passes, "_WORTH_LOADING", 1)
    monkeypatch.setattr(passes, "_LEAST_SHARE", 1000)
    monkeypatch.setattr(passes, "_LEAST_SHARE_TO_LOOK", 1000)
    monkeypatch.setattr(passes, "WORTH_LOOKING", 1)
