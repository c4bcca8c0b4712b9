"""Check that every import inside the package points to a lower layer.

Usage: python tools/layers.py [pyproject.toml] [--picture]

The layers are listed in pyproject.toml under [tool.layers], lowest first. A layer lists top-level
modules and packages. Each may import from the layers below; packages of one layer do not import
each other, plain modules such as ``__main__`` may import their neighbours. Every import counts, at
the top of a file, inside a function or under TYPE_CHECKING. A line with the comment
``# layers: REASON`` is left out.
"""

import ast
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FACADE = "__init__"


@dataclass(frozen=True)
class Layers:
    """A package, where its source is, and its layers, lowest first."""

    name: str
    root: Path
    layers: list[list[str]]

    @classmethod
    def read(cls, pyproject: Path) -> "Layers":
        """Read the layers that a pyproject.toml declares."""
        table = tomllib.loads(pyproject.read_text())["tool"]["layers"]
        name = table["package"]
        return cls(name, pyproject.parent / "src" / name, table["layers"])

    def level(self, part: str) -> int | None:
        """Return the index of the layer of a module or package, or None if it is in none."""
        return next((i for i, parts in enumerate(self.layers) if part in parts), None)

    def part_of(self, dotted: str) -> str:
        """Return the top-level module or package that a dotted name belongs to."""
        first = dotted.split(".")[1:2]
        return first[0] if first and self.has(first[0]) else FACADE

    def has(self, part: str) -> bool:
        """Return whether the package has such a top-level module or package."""
        return (self.root / part).is_dir() or (self.root / f"{part}.py").exists()

    def picture(self) -> str:
        """Draw the layers, highest first."""
        rows = ["   ".join(parts) for parts in reversed(self.layers)]
        width = max(map(len, rows)) + 2
        line = f"+{'-' * width}+"
        return "\n".join([line, *(f"| {row:<{width - 2}} |\n{line}" for row in rows)])


def imports(source: str, package_of_file: str) -> Iterator[tuple[int, str]]:
    """Yield (line, absolute dotted name) of every import of a file."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package_of_file.split(".")
            above = parts[: len(parts) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)


def violations(package: Layers) -> Iterator[str]:
    """Yield one sentence for each part in no layer and each import that does not point down."""
    for path in sorted(package.root.rglob("*.py")):
        inside = path.relative_to(package.root)
        part = inside.parts[0].removesuffix(".py")
        level = package.level(part)
        if level is None:
            yield f"{inside}: {part!r} is in no layer of [tool.layers]"
            continue
        source = path.read_text()
        lines = source.splitlines()
        package_of_file = ".".join([package.name, *inside.parts[:-1]])
        for number, name in imports(source, package_of_file):
            if name.split(".")[0] != package.name or "# layers: " in lines[number - 1]:
                continue
            other = package.part_of(name)
            other_level = package.level(other)
            if other == part or other_level is None or other_level < level:
                continue
            if other_level > level:
                yield f"{inside}:{number}: {part!r} imports {other!r}, above it"
            elif len(inside.parts) > 1:
                yield f"{inside}:{number}: {part!r} imports {other!r}, beside it"


def main(arguments: list[str]) -> int:
    paths = [argument for argument in arguments if not argument.startswith("-")]
    package = Layers.read(Path(paths[0] if paths else "pyproject.toml"))
    if "--picture" in arguments:
        print(package.picture())
        return 0
    found = list(violations(package))
    print("\n".join(found) or f"{package.name}: every import points to a lower layer")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
