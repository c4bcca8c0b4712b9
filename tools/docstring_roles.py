"""Markdown extension: roles in docstrings, such as ``:func:`ece```, become links to the reference.

A leading tilde shortens the shown name to its last part, as numpydoc readers expect. Entries of See
Also, ``name : description``, become a list.
"""

import re
from typing import Any

from markdown import Markdown
from markdown.extensions import Extension
from markdown.preprocessors import Preprocessor

_ROLE = re.compile(r":(?:func|class|meth|attr|mod|exc|data):`(?P<tilde>~?)(?P<name>[\w.]+)`")
_SEE_ALSO = re.compile(r"(?P<name>[A-Za-z_][\w.]*) : (?P<text>\S.*)")
# After fenced code blocks (25) have been taken out, before anything else reads the text.
_PRIORITY = 24


def _link(match: re.Match[str]) -> str:
    name = match["name"]
    shown = name.rpartition(".")[2] if match["tilde"] else name
    return f"[`{shown}`][{name}]"


class _Roles(Preprocessor):
    def run(self, lines: list[str]) -> list[str]:
        listed = [
            _SEE_ALSO.sub(r"- `\g<name>`: \g<text>", line) if _SEE_ALSO.fullmatch(line) else line
            for line in lines
        ]
        return [_ROLE.sub(_link, line) for line in listed]


class _RolesExtension(Extension):
    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        md.preprocessors.register(_Roles(md), "docstring_roles", _PRIORITY)


def makeExtension(**options: Any) -> Extension:  # noqa: N802
    return _RolesExtension(**options)
