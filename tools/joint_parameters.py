"""Griffe extension: parameters documented together keep their own types and defaults.

For an entry such as ``y_true, y_prob`` griffe gives every name the type and default of one of them;
here they are taken from the signature.
"""

from typing import Any

from griffe import DocstringParameter, DocstringSectionParameters, Extension, Function


class JointParameters(Extension):
    """Take type and default of documented parameters from the signature."""

    def on_function(self, *, func: Function, **_: Any) -> None:
        """Correct one function's docstring."""
        for section in func.docstring.parsed if func.docstring else ():
            if isinstance(section, DocstringSectionParameters):
                for documented in section.value:
                    _correct(documented, func)


def _correct(documented: DocstringParameter, function: Function) -> None:
    if documented.name in function.parameters:
        actual = function.parameters[documented.name]
        documented.annotation, documented.value = actual.annotation, actual.default
