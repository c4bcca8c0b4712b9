"""Calibration measures in the shape that other libraries expect, one module a library."""
