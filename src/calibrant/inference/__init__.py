"""Tests of calibration, and the distributions of their P-values."""

from calibrant.numerics.probability import BrownianDistribution, brownian_max, brownian_range

__all__ = ["BrownianDistribution", "brownian_max", "brownian_range"]
