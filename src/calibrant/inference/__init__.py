"""Tests of calibration, and the laws that their P-values come from."""
