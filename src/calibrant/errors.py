"""The exceptions that calibrant raises.

Every message is one sentence: what must hold, what was found, where, and what to do about it.
"""

from typing import Any

__all__ = ["CalibrantError", "MissingDependencyError", "SketchError"]

# The number of characters of a value that a message shows.
_MAX_SHOWN = 80


class CalibrantError(ValueError):
    """Input or options that calibrant refuses, said in one sentence on one line."""

    def __init__(self, sentence: str = "") -> None:
        super().__init__(" ".join(line.strip() for line in sentence.splitlines()))


class SketchError(CalibrantError):
    """A sketch cannot answer the question exactly, or its bytes cannot be trusted."""


class MissingDependencyError(CalibrantError, ImportError):
    """An optional dependency is needed; the message says what to install."""


def shown(value: Any) -> str:
    """Return a value as messages show it: numbers as Python writes them, arrays by their shape."""
    if getattr(value, "shape", ()):
        return f"{type(value).__name__} of shape {tuple(value.shape)}"
    if hasattr(value, "dtype") and hasattr(value, "item"):
        value = value.item()
    try:
        text = repr(value)
    except ValueError:  # Python writes no integer of more than 4300 digits
        return f"{type(value).__name__} too long to show"
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 20]}..."
