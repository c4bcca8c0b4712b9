"""Slow, obvious twins of calibrant's fast code, written straight from the formulas."""
