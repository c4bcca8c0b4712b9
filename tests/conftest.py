"""Settings for all tests."""

import os
import random

import pytest
from hypothesis import settings

# Figures are drawn into memory. Set before anything imports matplotlib.
os.environ.setdefault("MPLBACKEND", "Agg")

# No test measures time, so no example has a deadline. Examples are the same every time, so that
# nothing goes red overnight; HYPOTHESIS_PROFILE=explore looks for new ones.
settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


def pytest_collection_modifyitems(items):
    """Run tests in another order where TEST_ORDER, a seed, asks for it: no test needs another."""
    if seed := os.environ.get("TEST_ORDER"):
        random.Random(seed).shuffle(items)
        # Files stay in one piece, for what their tests set up together.
        place = {item.path: number for number, item in enumerate(items)}
        items.sort(key=lambda item: place[item.path])


@pytest.fixture
def asked_of_duckdb(monkeypatch):
    """Return the list of what is asked of connections to DuckDB from now on."""
    duckdb = pytest.importorskip("duckdb")
    connect, asked = duckdb.connect, []

    class Listening:
        def __init__(self, connection):
            self.connection = connection

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.connection.close()

        def __getattr__(self, name):
            method = getattr(self.connection, name)

            def called(*arguments, **options):
                asked.append(f"{name} {' '.join(map(str, arguments))} {' '.join(options)}")
                return method(*arguments, **options)

            return called

    monkeypatch.setattr(duckdb, "connect", lambda: Listening(connect()))
    return asked
