"""Calibration measures, one module a family."""
