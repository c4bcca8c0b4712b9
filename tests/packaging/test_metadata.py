"""Facts that stand in more than one file agree."""

import re
import tomllib
from pathlib import Path

import pytest

import calibrant
from tools.cpu_torch import gpu_libraries, pinned
from tools.lowest import constraints, lower_bounds

ROOT = Path(__file__).parents[2]
PYPROJECT = (ROOT / "pyproject.toml").read_text()
PINS = (ROOT / "constraints.txt").read_text()


def _parts(version):
    return tuple(int(part) for part in version.split("."))


def test_citation_states_the_version():
    (stated,) = re.findall(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert stated == calibrant.__version__


def test_all_extra_holds_every_extra():
    extras = tomllib.loads(PYPROJECT)["project"]["optional-dependencies"]
    (everything,) = extras.pop("all")
    assert everything == f"calibrant[{','.join(extras)}]"


def test_every_version_is_pinned_and_no_lower_than_its_bound():
    pins = dict(line.lower().split("==") for line in PINS.splitlines() if not line.startswith("#"))
    for name, bound in lower_bounds(PYPROJECT).items():
        assert _parts(pins[name]) >= _parts(bound), name


def test_lowest_constraints_replace_the_core_pins_only():
    pyproject = '[project]\ndependencies = ["NumPy>=1.26.0"]\n'
    assert constraints(pyproject, "# why\nnumpy==2.4.6\nother==3\n") == (
        "# why\nother==3\nnumpy==1.26.0\n"
    )


def report(*requires):
    """What pip says about a build of torch that needs these."""
    return {"install": [{"metadata": {"name": "torch", "requires_dist": list(requires)}}]}


def test_a_torch_with_gpu_libraries_is_told_from_one_without():
    plain = "filelock", "jinja2", 'opt-einsum>=3.3; extra == "opt-einsum"'
    marked = 'nvidia-nccl-cu13==2.29.7; platform_system == "Linux"'
    assert gpu_libraries(report(*plain), "Linux") == []
    assert gpu_libraries({"install": [{"metadata": {"name": "torch"}}]}, "Linux") == []
    assert gpu_libraries(report(*plain, marked), "Linux") == ["nvidia-nccl-cu13==2.29.7"]
    assert gpu_libraries(report(*plain, marked), "Darwin") == []
    assert gpu_libraries(report("cuda-toolkit[cublas]==13.0.3", "triton==3.7.1"), "Linux")


def test_torch_is_pinned_once():
    assert f"{pinned(PYPROJECT)}\n" in PINS


@pytest.mark.parametrize("requirement", ["numpy", "numpy>1", "numpy>=1,<3", "numpy==2"])
def test_a_dependency_without_a_plain_lower_bound_is_refused(requirement):
    with pytest.raises(SystemExit, match="must read 'name>=version'"):
        lower_bounds(f'[project]\ndependencies = ["{requirement}"]\n')
