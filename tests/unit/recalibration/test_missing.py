"""Without scikit-learn there is one sentence."""

import subprocess
import sys

CODE = """
import sys
sys.modules["sklearn"] = None
try:
    import calibrant.recalibration
except ImportError as problem:
    print(type(problem).__name__, problem)
"""


def test_one_sentence_says_what_to_install():
    run = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == (
        "MissingDependencyError calibrant.recalibration needs scikit-learn: "
        "pip install 'calibrant[sklearn]'"
    )
