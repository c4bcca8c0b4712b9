"""Settings for all tests."""

import os

from hypothesis import settings

# Figures are drawn into memory. Set before anything imports matplotlib.
os.environ.setdefault("MPLBACKEND", "Agg")

# No test measures time, so no example has a deadline. In CI the examples are the same every time.
settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if "CI" in os.environ else "local")
