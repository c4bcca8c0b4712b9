"""The version, in the one place that the package, its metadata and its documents read."""

__version__ = "0.1.0.dev0"
