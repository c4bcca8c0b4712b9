"""Names, parameters, defaults and fields that other people's code relies on.

`python -m tests.contract.test_signatures` writes what there is now to signatures.json: a change of
that file is a change of the interface, and stands in CHANGELOG.md.
"""

from __future__ import annotations

import inspect
import json
from dataclasses import fields, is_dataclass
from pathlib import Path

import calibrant as cb

SIGNATURES = Path(__file__).with_name("signatures.json")


def parameters(function) -> list[str]:
    """Return the parameters with their defaults, and where keywords begin."""
    found = []
    for parameter in inspect.signature(function).parameters.values():
        default = "" if parameter.default is parameter.empty else f"={parameter.default!r}"
        star = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(parameter.kind.name, "")
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in found:
            found.append("*")
        found.append(f"{star}{parameter.name}{default}")
    return found


def public() -> dict[str, list[str]]:
    """Return the parameters of every public function, and the fields of every result."""
    found = {}
    for name in cb.__all__:
        value = getattr(cb, name)
        if is_dataclass(value):
            found[name] = [field.name for field in fields(value)]
        elif inspect.isfunction(value):
            found[name] = parameters(value)
        elif inspect.isclass(value):
            members = inspect.getmembers(value, inspect.isfunction)
            found[name] = sorted(n for n, _ in members if not n.startswith("_"))
        else:
            found[name] = []
    for name in cb.plot.__all__:
        found[f"plot.{name}"] = parameters(getattr(cb.plot, name))
    return found


def test_the_interface_is_what_it_was():
    assert public() == json.loads(SIGNATURES.read_text())


if __name__ == "__main__":
    SIGNATURES.write_text(json.dumps(public(), indent=1) + "\n")
