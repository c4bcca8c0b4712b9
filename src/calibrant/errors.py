"""The exceptions that calibrant raises.

Every message is one sentence: what must hold, what was found, where, and what to do about it.
"""

__all__ = ["CalibrantError", "MissingDependencyError", "SketchError"]


class CalibrantError(ValueError):
    """Input or options that calibrant refuses, said in one sentence."""


class SketchError(CalibrantError):
    """A sketch cannot answer the question exactly, or its bytes cannot be trusted."""


class MissingDependencyError(CalibrantError, ImportError):
    """An optional dependency is needed; the message says what to install."""
