"""Keep the explanation of shared parameters the same in every docstring.

Usage: python tools/shared_parameters.py [--check]

shared_parameters.txt has an entry for each: a line ``name : type`` and the lines that explain it.
Wherever a docstring of the package has that first line, the lines below it become those of the
entry. What a function adds of its own follows after an empty line. A parameter that has entries may
have no other type.
"""

import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
SOURCE = HERE.parent / "src" / "calibrant"
_HEADER = re.compile(r"^( *)(\w+) : (.+)$")
_WIDTH = 100


def entries() -> dict[str, str]:
    """Return the explanation of each shared parameter by its header."""
    blocks = re.findall(
        r"^(\S.*)\n((?: +.*\n)+)", (HERE / "shared_parameters.txt").read_text(), re.MULTILINE
    )
    return {header: " ".join(text.split()) for header, text in blocks}


def explained(source: str, shared: dict[str, str]) -> str:
    """Return a source with every shared parameter explained by its entry."""
    lines = source.split("\n")
    result = []
    while lines:
        line = lines.pop(0)
        result.append(line)
        if line.strip() not in shared:
            continue
        indent = len(line) - len(line.lstrip()) + 4
        while lines and lines[0].strip() and _indent(lines[0]) >= indent:
            lines.pop(0)
        filled = textwrap.wrap(shared[line.strip()], _WIDTH - indent, break_on_hyphens=False)
        result += [" " * indent + part for part in filled]
    return "\n".join(result)


def other_types(source: str, shared: dict[str, str]) -> Iterator[tuple[int, str]]:
    """Yield (line number, header) of shared parameters that have a type of their own."""
    names = {header.partition(" : ")[0] for header in shared}
    for number, line in enumerate(source.split("\n"), 1):
        match = _HEADER.match(line)
        own = match and match[2] in names and not match[3].startswith("ndarray")
        if own and line.strip() not in shared:
            yield number, line.strip()


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def main(arguments: list[str]) -> int:
    shared, found = entries(), []
    for path in sorted(SOURCE.rglob("*.py")):
        source = path.read_text()
        new = explained(source, shared)
        where = path.relative_to(SOURCE.parent)
        found += [
            f"{where}:{n}: {header}: not a shared type" for n, header in other_types(new, shared)
        ]
        if new == source:
            continue
        if "--check" in arguments:
            found.append(f"{where}: run python tools/shared_parameters.py")
        else:
            path.write_text(new)
    print("\n".join(found) or "every shared parameter is explained by its entry")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
