"""Sketches: constant-size, mergeable knowledge of any number of rows."""
