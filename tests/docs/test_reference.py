"""Every public name stands in the reference, and the reference names nothing else."""

import re
from pathlib import Path

import calibrant

REFERENCE = Path(__file__).parents[2] / "docs" / "api.md"


def test_reference_lists_exactly_the_public_names():
    listed = re.findall(r"^::: calibrant\.(\w+)$", REFERENCE.read_text(), re.MULTILINE)
    assert len(listed) == len(set(listed))
    public = {*calibrant.__all__, *calibrant._WITH_EXTRAS} - {"__version__"}
    assert set(listed) == public
