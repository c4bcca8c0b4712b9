"""Curves as data: what to expect at each score, and where the cumulative deviation goes."""
