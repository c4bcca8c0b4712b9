"""Braille: a picture of dots in characters, two dots wide and four dots high each."""

from __future__ import annotations

from dataclasses import dataclass, field

# Which bit of a braille character is the dot in this row and column of it.
_BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_BLANK = 0x2800


@dataclass
class Dots:
    """A picture of so many characters, with the point (0, 0) at its lower left."""

    width: int
    height: int
    dots: set[tuple[int, int]] = field(default_factory=set)

    @property
    def size(self) -> tuple[int, int]:
        """How many dots there are from left to right and from bottom to top."""
        return 2 * self.width, 4 * self.height

    def mark(self, x: float, y: float) -> None:
        """Set the dot nearest to a point of the unit square; points outside are left out."""
        if 0 <= x <= 1 and 0 <= y <= 1:
            across, up = self.size
            self.dots.add((round(x * (across - 1)), round(y * (up - 1))))

    def line(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Set the dots between two points."""
        steps = max(
            1, *(round(abs(b - a) * n) for a, b, n in zip(start, end, self.size, strict=True))
        )
        for step in range(steps + 1):
            share = step / steps
            self.mark(*(a + share * (b - a) for a, b in zip(start, end, strict=True)))

    def rows(self) -> list[str]:
        """Return the picture, a string for every row of characters, the top one first."""
        codes = [[_BLANK] * self.width for _ in range(self.height)]
        for x, y in self.dots:
            down = 4 * self.height - 1 - y
            codes[down // 4][x // 2] |= _BITS[down % 4][x % 2]
        return ["".join(map(chr, row)) for row in codes]

    def plain_rows(self, mark: str) -> list[str]:
        """Return the picture without braille: a mark wherever there are dots."""
        return ["".join(" " if c == chr(_BLANK) else mark for c in row) for row in self.rows()]
