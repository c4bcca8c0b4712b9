"""Every paper, run quickly and once."""

import pytest

from calibrant import papers


@pytest.fixture(scope="module")
def quickly(tmp_path_factory):
    """Give a function that runs a paper quickly, in a folder of its own."""
    return lambda name: papers.run(name, out=tmp_path_factory.mktemp(name), quick=True)
