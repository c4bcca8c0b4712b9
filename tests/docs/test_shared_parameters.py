"""Shared parameters are explained in every docstring, by one text."""

import inspect

import pytest

import calibrant as cb
from tools.shared_parameters import entries, explained, main, other_types

SHARED = entries()
NAMES = {header.partition(" : ")[0] for header in SHARED}
PUBLIC = [(cb, name) for name in cb.__all__] + [(cb.plot, name) for name in cb.plot.__all__]
FUNCTIONS = [getattr(module, name) for module, name in PUBLIC]


def test_the_package_is_up_to_date():
    assert main(["--check"]) == 0


@pytest.mark.parametrize(
    "function", [f for f in FUNCTIONS if inspect.isfunction(f)], ids=lambda f: f.__name__
)
def test_every_parameter_has_a_type_and_an_explanation(function):
    lines = [line.strip() for line in inspect.getdoc(function).splitlines()]
    typed = {line.partition(" : ")[0] for line in lines if " : " in line}
    documented = {name for names in typed for name in names.split(", ")}
    parameters = inspect.signature(function).parameters.values()
    wanted = {p.name for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)}
    assert wanted <= documented


def test_text_of_a_shared_parameter_is_replaced_and_additions_stay():
    source = (
        "    x : int\n        Old.\n        More.\n\n        Own.\n    y : int\n        Kept.\n"
    )
    new = explained(source, {"x : int": "New text."})
    assert new == "    x : int\n        New text.\n\n        Own.\n    y : int\n        Kept.\n"


def test_another_type_of_a_shared_parameter_is_found():
    found = list(other_types("    x : float\n    z : int\n", {"x : int": "Text."}))
    assert found == [(1, "x : float")]
