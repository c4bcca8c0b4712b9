"""Passes over columns and tables, compiled by numba where it is installed."""
