"""Tests of calibration, and the laws that their P-values come from."""

from calibrant.numerics.probability import BrownianDistribution, brownian_max, brownian_range

__all__ = ["BrownianDistribution", "brownian_max", "brownian_range"]
