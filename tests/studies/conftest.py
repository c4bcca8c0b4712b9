"""Every study, run quickly and once."""

import pytest

import studies


@pytest.fixture(scope="module")
def quickly(tmp_path_factory):
    """Give a function that runs a study quickly, in a folder of its own."""
    return lambda name: studies.run(name, out=tmp_path_factory.mktemp(name), quick=True)
