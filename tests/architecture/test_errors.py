"""Errors are raised in parts: constant texts, and values that are never read as such texts."""

import ast
import inspect
from pathlib import Path

import pytest

import calibrant as cb
from calibrant.cli.messages import _NAMES

SOURCE = Path(cb.__file__).parent
PARTS = set(inspect.signature(cb.CalibrantError).parameters)
CLASSES = {"CalibrantError", "SketchError", "MissingDependencyError"}


def places():
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = getattr(getattr(node, "func", None), "id", None)
            if isinstance(node, ast.Call) and name in CLASSES:
                yield f"{path.relative_to(SOURCE)}:{node.lineno}", node


RAISED = dict(places())


@pytest.mark.parametrize("place", RAISED)
def test_texts_with_names_in_braces_are_constant(place):
    call = RAISED[place]
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    if set(given) <= {"source"}:
        return  # a plain sentence
    texts = [*call.args, *(given[part] for part in ("found", "hint") if part in given)]
    assert not any(isinstance(node, ast.JoinedStr) for text in texts for node in ast.walk(text))
    # A word of the raise site must not be taken for an argument that the command line names.
    assert not (set(given) - PARTS) & set(_NAMES)
