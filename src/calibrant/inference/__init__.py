"""Tests of calibration, and the laws that their P-values come from."""

from calibrant.inference.laws import BrownianLaw, brownian_max, brownian_range

__all__ = ["BrownianLaw", "brownian_max", "brownian_range"]
