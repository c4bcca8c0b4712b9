"""Is the installed package whole? Run by `make package` in an environment that holds nothing else.

A script, not a pytest module: pytest is not there. It runs in isolated mode, so only what was
installed can be imported.
"""

import subprocess
import sys
from importlib.metadata import metadata, version
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

HEAVY = ["matplotlib", "scipy", "pandas", "polars", "pyarrow", "duckdb", "torch", "sklearn"]

LIGHT_IMPORT = f"""
import sys, calibrant
loaded = sorted(set({HEAVY!r}) & set(sys.modules))
assert not loaded, f"import calibrant loads {{loaded}}"
"""


def main() -> None:
    """Check in turn; the first failure ends the script with its message."""
    subprocess.run([sys.executable, "-I", "-c", LIGHT_IMPORT], check=True)

    import calibrant as cb

    assert Path(cb.__file__).is_relative_to(sys.prefix), f"{cb.__file__} is not the installed one"
    assert cb.__version__ == version("calibrant")
    assert metadata("calibrant")["License-Expression"] == "BSD-3-Clause AND MIT"
    assert files("calibrant").joinpath("py.typed").is_file(), "type information is missing"

    for name in cb.__all__:
        getattr(cb, name)

    assert find_spec("studies") is None, "studies belong beside the package"

    assert cb.ece([1, 0], [0.95, 1.0], n_bins=10) == 0.475
    y_true, y_prob = cb.datasets.load_rain()
    assert 0.0 < cb.ece(y_true, y_prob) < cb.mce(y_true, y_prob) <= 1.0
    assert len(cb.bin_table(y_true, y_prob, n_bins=5).n) == 5
    parts = cb.score_decomposition(y_true, y_prob)
    total = parts.miscalibration - parts.discrimination + parts.uncertainty
    assert abs(total - cb.brier_score(y_true, y_prob)) < 1e-12
    assert cb.recommend(y_true, y_prob).similar.distributions > 0, "the study's table is missing"
    try:
        cb.ece([0, 1], [0.5, 1.5])
    except cb.CalibrantError:
        pass
    else:
        raise AssertionError("1.5 passed as a probability")
    print(f"calibrant {cb.__version__}: installed, light to import, and working")


if __name__ == "__main__":
    main()
