"""Check that no room of the package imports a room beside or above it.

Usage: python tools/layers.py [pyproject.toml] [--picture]

The rooms and their floors stand in pyproject.toml under [tool.layers], lowest floor first. Every
import counts, at the top of a file, inside a function or under TYPE_CHECKING. A line may say
``# layers: REASON`` to be left out.
"""

import ast
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FACADE = "__init__"


@dataclass(frozen=True)
class House:
    """A package, where it lives, and its rooms from the lowest floor to the highest."""

    package: str
    root: Path
    floors: list[list[str]]

    @classmethod
    def read(cls, pyproject: Path) -> "House":
        """Read the floors that a pyproject.toml declares."""
        table = tomllib.loads(pyproject.read_text())["tool"]["layers"]
        package = table["package"]
        return cls(package, pyproject.parent / "src" / package, table["floors"])

    def floor_of(self, room: str) -> int | None:
        """Return the floor of a room, or None when nobody declared it."""
        return next((i for i, rooms in enumerate(self.floors) if room in rooms), None)

    def room_of(self, module: str) -> str:
        """Return the room of a dotted name: its first part below the package that is a module."""
        first = module.split(".")[1:2]
        return first[0] if first and self.has(first[0]) else FACADE

    def has(self, room: str) -> bool:
        """Tell whether a room has been built: rooms may be declared before they are."""
        return (self.root / room).is_dir() or (self.root / f"{room}.py").exists()

    def picture(self) -> str:
        """Draw the floors with the rooms that are there, highest first."""
        built = [[room for room in rooms if self.has(room)] for rooms in self.floors]
        rows = ["   ".join(rooms) for rooms in reversed(built) if rooms]
        width = max(map(len, rows)) + 2
        line = f"+{'-' * width}+"
        return "\n".join([line, *(f"| {row:<{width - 2}} |\n{line}" for row in rows)])


def imports(source: str, package_of_file: str) -> Iterator[tuple[int, str]]:
    """Yield (line, absolute dotted name) of everything that a file imports, wherever it does."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package_of_file.split(".")
            above = parts[: len(parts) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)


def violations(house: House) -> Iterator[str]:
    """Yield one sentence for each undeclared room and each import that does not point down."""
    for path in sorted(house.root.rglob("*.py")):
        inside = path.relative_to(house.root)
        room = inside.parts[0].removesuffix(".py")
        floor = house.floor_of(room)
        if floor is None:
            yield f"{inside}: the room {room!r} is on no floor of [tool.layers]"
            continue
        source = path.read_text()
        lines = source.splitlines()
        package_of_file = ".".join([house.package, *inside.parts[:-1]])
        for number, name in imports(source, package_of_file):
            if name.split(".")[0] != house.package or "# layers: " in lines[number - 1]:
                continue
            other = house.room_of(name)
            other_floor = house.floor_of(other)
            if other != room and other_floor is not None and other_floor >= floor:
                where = "beside" if other_floor == floor else "above"
                yield f"{inside}:{number}: {room!r} imports {other!r}, a room {where} it"


def main(arguments: list[str]) -> int:
    paths = [argument for argument in arguments if not argument.startswith("-")]
    house = House.read(Path(paths[0] if paths else "pyproject.toml"))
    if "--picture" in arguments:
        print(house.picture())
        return 0
    found = list(violations(house))
    print("\n".join(found) or f"{house.package}: every import points down")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
