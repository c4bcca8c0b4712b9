"""A measure of a sample as a norm of a linear image of cells whose noise is known."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from calibrant.arrays import FloatArray
from calibrant.inference.intervals.cells import Cells
from calibrant.inference.intervals.clusters import Clusters
from calibrant.measures.linear_image import LinearImage
from calibrant.measures.registry import Measure
from calibrant.problem import Problem


@dataclass(frozen=True, eq=False)
class View:
    """A measure of a sample, as a norm of an image of its cells' residual totals.

    Attributes
    ----------
    value
        The measure, computed exactly: cells serve for the noise alone.
    cells
        The sample.
    image
        The linear function of their residual totals, and its norm.
    """

    value: float
    cells: Cells
    image: LinearImage

    @classmethod
    def of(
        cls, measure: Measure, problem: Problem, value: float, clusters: Clusters | None = None
    ) -> View:
        """Return a measure, whose value is known, of a problem."""
        image = measure.image(problem, value)
        cells = Cells.gather(problem, image.cell_of, image.n_cells, clusters)
        if image.of_filled is None:
            return cls(value, cells, image)
        (filled,) = np.nonzero(cells.weight)
        return cls(value, cells.some(filled), image.of_filled(filled))

    def at_scale(self, scale: float) -> View:
        """Return the norm at another scale, for a measure that is a scale."""
        assert self.image.at_scale is not None
        return replace(self, image=self.image.at_scale(scale))

    def of_noise(self, totals: FloatArray) -> FloatArray:
        """Return the image of noise added to residual totals."""
        return self.image.of_totals(totals, self.cells.weight)

    @cached_property
    def offset(self) -> FloatArray | float:
        """The image of the population if it is perfectly calibrated."""
        offset_of = self.image.offset_of
        return 0.0 if offset_of is None else offset_of(self.cells.weight)

    @cached_property
    def observed(self) -> FloatArray:
        """The image of the sample."""
        return self.of_noise(self.cells.residual) + self.offset

    @cached_property
    def observed_norm(self) -> float:
        """The norm of the observed image."""
        return float(self.image.norm.of(self.observed))

    @property
    def size(self) -> int:
        """How many numbers there are in a resample, or in its image."""
        return max(len(self.cells.weight), len(self.observed))
