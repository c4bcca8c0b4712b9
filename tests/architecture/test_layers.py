"""Imports point down, and the check that says so can fail."""

from pathlib import Path

import pytest

from tools.layers import Layers, main, violations

ROOT = Path(__file__).parents[2]

PYPROJECT = """
[tool.layers]
package = "pkg"
layers = [["low", "helper"], ["middle", "beside"], ["__init__"]]
"""


@pytest.fixture
def found(tmp_path):
    """Return a function that builds a package from {path: source} and lists its violations."""

    def build(files):
        (tmp_path / "pyproject.toml").write_text(PYPROJECT)
        parts = {"low.py": "", "helper.py": "", "middle/__init__.py": "", "beside/__init__.py": ""}
        parts["__init__.py"] = ""
        for name, source in (parts | files).items():
            path = tmp_path / "src" / "pkg" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(source)
        return list(violations(Layers.read(tmp_path / "pyproject.toml")))

    return build


def test_calibrant_imports_point_down():
    assert list(violations(Layers.read(ROOT / "pyproject.toml"))) == []


def test_picture_in_the_architecture_page_is_true():
    page = (ROOT / "docs" / "architecture.md").read_text()
    picture = Layers.read(ROOT / "pyproject.toml").picture()
    assert picture in page, f"docs/architecture.md should show:\n{picture}"


def test_every_package_is_described_in_the_architecture_page():
    page = (ROOT / "docs" / "architecture.md").read_text()
    parts = [part for layer in Layers.read(ROOT / "pyproject.toml").layers for part in layer]
    assert [part for part in parts if f"`{part}`" not in page] == []


def test_importing_down_and_inside_a_package_is_fine(found):
    files = {
        "middle/one.py": "import pkg.low\nfrom pkg import helper\nfrom . import two\n",
        "middle/two.py": "from ..low import x\nimport numpy.low\n",
        "__init__.py": "from pkg.middle import one\n",
    }
    assert found(files) == []


@pytest.mark.parametrize(
    "source",
    [
        "import pkg.middle\n",
        "import pkg.middle.one as m\n",
        "from pkg import middle\n",
        "from pkg.middle import x\n",
        "from pkg.middle.one import x\n",
        "from . import middle\n",
        "from .middle import x\n",
        "def f():\n    from pkg import middle\n",
        "if TYPE_CHECKING:\n    from pkg.middle import X\n",
    ],
)
def test_importing_up_is_found(found, source):
    line = len(source.splitlines())
    assert found({"low.py": source}) == [f"low.py:{line}: 'low' imports 'middle', above it"]


def test_a_package_that_imports_one_beside_it_is_found(found):
    message = "middle/one.py:1: 'middle' imports 'beside', beside it"
    assert found({"middle/one.py": "import pkg.beside\n"}) == [message]


def test_a_module_may_import_what_is_beside_it(found):
    assert found({"low.py": "import pkg.helper\n"}) == []


@pytest.mark.parametrize("source", ["import pkg\n", "from pkg import name\n"])
def test_importing_the_facade_from_below_is_found(found, source):
    message = "middle/one.py:1: 'middle' imports '__init__', above it"
    assert found({"middle/one.py": source}) == [message]


def test_a_part_in_no_layer_is_found(found):
    files = {"attic.py": "", "cellar/box.py": ""}
    assert found(files) == [
        "attic.py: 'attic' is in no layer of [tool.layers]",
        "cellar/box.py: 'cellar' is in no layer of [tool.layers]",
    ]


def test_a_stated_reason_lets_a_line_pass(found):
    assert found({"low.py": "import pkg.middle  # layers: only a type, and it moves soon\n"}) == []
    assert found({"low.py": "import pkg.middle  # layers\n"}) != []


def test_the_command_fails_on_a_violation(found, tmp_path, capsys):
    found({"low.py": "import pkg.middle\n"})
    assert main([str(tmp_path / "pyproject.toml")]) == 1
    assert "low.py:1" in capsys.readouterr().out
    assert main([str(ROOT / "pyproject.toml")]) == 0
