"""Print constraints that hold the core dependencies at the lower bounds of pyproject.toml.

Usage: python tools/lowest.py pyproject.toml constraints.txt

All other packages keep their pins from constraints.txt, so the two runs do not differ otherwise.
"""

import re
import sys
import tomllib
from pathlib import Path

_LOWER_BOUND = re.compile(
    r"(?P<name>[A-Za-z0-9._-]+)(\[[^]]*\])?>=(?P<version>[0-9][0-9.]*)"
    r"(; python_version (?P<side><|>=) '3\.(?P<minor>[0-9]+)')?"
)


def lower_bounds(pyproject: str, minor: int = sys.version_info.minor) -> dict[str, str]:
    """Return {name: lowest version} of the core dependencies on Python 3.minor."""
    bounds = {}
    for requirement in tomllib.loads(pyproject)["project"]["dependencies"]:
        match = _LOWER_BOUND.fullmatch(requirement)
        if match is None:
            raise SystemExit(
                "dependency must read 'name>=version', perhaps with \"; python_version < '3.13'\"; "
                f"got {requirement!r}"
            )
        if match["side"] is None or (minor < int(match["minor"])) == (match["side"] == "<"):
            bounds[match["name"].lower()] = match["version"]
    return bounds


def constraints(pyproject: str, pins: str) -> str:
    """Return the pins with the core dependencies replaced by their lower bounds."""
    bounds = lower_bounds(pyproject)
    others = [pin for pin in pins.splitlines() if pin.partition("==")[0].lower() not in bounds]
    return "\n".join([*others, *(f"{name}=={version}" for name, version in bounds.items())]) + "\n"


if __name__ == "__main__":
    sys.stdout.write(constraints(*(Path(argument).read_text() for argument in sys.argv[1:3])))
