"""The exceptions that calibrant raises.

An exception holds the parts of its sentence as fields: argument, rule, value, position and hint.
``str`` names the arguments of Python; the command line names its options and columns, and counts
rows from 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

__all__ = ["CalibrantError", "MissingDependencyError", "SketchError"]

Position = int | tuple[int, int]

# The number of characters of a value that a sentence shows.
_MAX_SHOWN = 80
_ABSENT: Any = object()
# What to do in Python; elsewhere there may be an option for it.
_IN_PYTHON = {
    "in_percent": "divide by 100",
    "dropping": "on_invalid='drop'",
    "as_models": "compare, report and plots take them by name, {'a': ..., 'b': ...}",
}


def at_index(position: Position) -> str:
    """Return a position as Python counts: the index of a row, or a row and a column."""
    if isinstance(position, tuple):
        return f"at row {position[0]}, column {position[1]}"
    return f"at index {position}"


class CalibrantError(ValueError):
    """Input or options that calibrant refuses, explained in one sentence on one line.

    ``CalibrantError("a plain sentence")`` is that sentence. With any other argument, `rule`,
    `found` and `hint` are constant templates with names in braces, ``{pos_label}``: of other
    arguments, or of `words`. Values are never read as templates, whatever characters they have.

    Parameters
    ----------
    rule : str
        What must hold, following the name of the argument: "must lie in [0, 1]".
    argument : str, optional
        The argument that breaks the rule.
    value : object, optional
        The value that breaks the rule, the first one of an array.
    found : str, optional
        The text shown in place of the value: "{value} in every row".
    position : int or tuple of int, optional
        The index of the value in its array, counted from 0; row and column in two dimensions.
    within : str, optional
        The file or the table that holds the value.
    count : int, optional
        The number of values that break the rule.
    hint : str, optional
        The likely cause, or what to do; left out where it names an argument that the command line
        does not have.
    source : str, optional
        The file or the model that the error is about, where there may be several.
    **words : object
        Values of the other names in braces.

    Attributes
    ----------
    argument, value, position, count, source
        As given; None where they do not apply.
    rule, hint : str or None
        With the names of Python's arguments; a plain sentence is its own rule.

    Examples
    --------
    >>> import calibrant as cb
    >>> try:
    ...     cb.ece([0, 1, 1], [0.2, 70, 90])
    ... except cb.CalibrantError as error:
    ...     print(error)
    ...     print(error.argument, error.value, error.position)
    y_prob must lie in [0, 1]; got 70.0 at index 1 (2 such values): percentages? divide by 100
    y_prob 70.0 1
    """

    def __init__(
        self,
        rule: str = "",
        /,
        *,
        argument: str | None = None,
        value: Any = _ABSENT,
        found: str | None = None,
        position: Position | None = None,
        within: str | None = None,
        count: int | None = None,
        hint: str | None = None,
        source: str | None = None,
        **words: object,
    ) -> None:
        is_plain = argument is found is hint is None and value is _ABSENT and not words
        self._rule = rule.replace("{", "{{").replace("}", "}}") if is_plain else rule
        self._found = "{value}" if found is None and value is not _ABSENT else found
        self._hint = hint
        self._words = words
        self._within = within
        self.count = count
        self.argument = argument
        self.value = None if value is _ABSENT else _scalar(value)
        self._shown = shown(value)
        self.position = position
        self.source = source
        super().__init__(self.sentence())

    @property
    def rule(self) -> str:
        """What must hold, with the names of Python's arguments."""
        return self._rule.format_map(_Names(self._words))

    @property
    def hint(self) -> str | None:
        """The likely cause or what to do, with the names of Python's arguments."""
        return None if self._hint is None else self._hint.format_map(_Names(self._words))

    def sentence(
        self,
        names: Mapping[str, str] | None = None,
        place: Callable[[Position], str] = at_index,
        hint: str | None = None,
    ) -> str:
        """Return the parts as a sentence on one line: name, rule, value, place, hint.

        Parameters
        ----------
        names : mapping, optional
            Names of arguments; by default those of Python.
        place : callable, optional
            Takes a position and returns its text.
        hint : str, optional
            A hint in place of the error's own.
        """
        known = {**(names or {}), **self._words}
        words = _Names(known)
        text = self._rule.format_map(words)
        if self.argument is not None:
            text = f"{words[self.argument]} {text}"
        if self._found is not None:
            found = self._found.format_map(_Names(known, value=self._shown))
            text += f"; got {found}{self._place(place)}"
        hint = hint or self._hint
        if hint is not None:
            with suppress(KeyError):  # it names an argument that is not among the names
                text += f": {hint.format_map(words if names is None else known)}"
        if self.source is not None:
            text = f"{self.source}: {text}"
        return " ".join(line.strip() for line in text.splitlines())

    def _place(self, place: Callable[[Position], str]) -> str:
        text = "" if self.position is None else f" {place(self.position)}"
        if self._within is not None:
            text += f" {'of' if text else 'in'} {self._within}"
        if self.count is not None and self.count > 1:
            text += f" ({self.count:,} such values)"
        return text

    def __str__(self) -> str:
        """Return the sentence with the names of Python's arguments."""
        return self.sentence()

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what pickle needs; a value that cannot be pickled becomes its text."""
        import pickle

        state = dict(self.__dict__)
        try:
            pickle.dumps(self.value)
        except Exception:  # noqa: BLE001  # an object may raise anything
            state["value"] = self._shown
        return type(self), self.args, state


class SketchError(CalibrantError):
    """A sketch cannot answer the question exactly, or its bytes cannot be trusted."""


class MissingDependencyError(CalibrantError, ImportError):
    """An optional dependency is needed; the message says what to install."""


@contextmanager
def required(task: str, extra: str, *packages: str) -> Iterator[None]:
    """Say what to install for a task where one of the packages imported inside is missing."""
    try:
        yield
    except ModuleNotFoundError as problem:
        missing = (problem.name or "").partition(".")[0]
        if missing not in packages:
            raise
        raise MissingDependencyError(
            "{task} needs {package}",
            hint="pip install 'calibrant[{extra}]'",
            task=task,
            package={"sklearn": "scikit-learn"}.get(missing, missing),
            extra=extra,
        ) from problem


class _Names(dict[str, Any]):
    """Texts by name; a name that is not there has its text in Python, mostly itself."""

    def __missing__(self, name: str) -> str:
        return _IN_PYTHON.get(name, name)


def shown(value: Any) -> str:
    """Return a value as sentences show it: as Python writes it, classes and arrays described."""
    if isinstance(value, type):
        return value.__name__
    if getattr(value, "shape", ()):
        return f"{type(value).__name__} of shape {tuple(value.shape)}"
    try:
        text = repr(_scalar(value))
    except ValueError:  # Python writes no integer of more than 4300 digits
        return f"{type(value).__name__} too long to show"
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 20]}..."


def _scalar(value: Any) -> Any:
    """Return a number of numpy or torch as one of Python."""
    is_scalar = hasattr(value, "item") and getattr(value, "shape", None) == ()
    return value.item() if is_scalar else value
