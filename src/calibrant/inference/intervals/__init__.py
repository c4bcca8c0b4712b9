"""Intervals for calibration errors: cells and their noise, norms, and what to conclude."""
