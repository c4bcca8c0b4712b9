"""The front door: every public name is there, documented, and loaded only when asked for."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import calibrant as cb
from calibrant.measures.registry import measures

SOURCE = ast.parse(Path(cb.__file__).read_text())


def names_seen_by_type_checkers():
    for node in ast.walk(SOURCE):
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            for statement in node.body:
                module = statement.module.removeprefix("calibrant.")
                yield from ((module, alias.name) for alias in statement.names)


def test_the_lazy_table_and_the_typed_imports_agree():
    lazy = {(module, name) for name, module in cb._MODULES.items()}
    assert set(names_seen_by_type_checkers()) == lazy
    assert set(cb.__all__) == {name for _, name in lazy} | {"__version__", *cb._SUBMODULES}
    # A measure may be new, and not yet typed.
    assert dir(cb) == sorted({*cb.__all__, *measures()})


@pytest.mark.parametrize("name", cb.__all__)
def test_every_name_can_be_had_and_is_documented(name):
    value = getattr(cb, name)
    assert isinstance(value, str) or value.__doc__


def test_an_unknown_name():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        cb.nonsense  # noqa: B018


def loaded_after(statement):
    heavy = ("matplotlib", "duckdb", "torch", "pandas", "scipy", "narwhals", "numba", "sklearn")
    code = f"import sys; {statement}; print([m for m in {heavy!r} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return ast.literal_eval(run.stdout)


@pytest.mark.parametrize(
    "statement",
    [
        "import calibrant",
        "import calibrant as cb; cb.ece([0, 1], [0.2, 0.7]); cb.Sketch().update([1], [0.7])",
    ],
)
def test_nothing_heavy_is_loaded_before_it_is_needed(statement):
    assert loaded_after(statement) == []
