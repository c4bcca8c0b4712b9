"""Passes over long columns, compiled by numba where it is installed."""
