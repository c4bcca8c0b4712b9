"""Rows into cells on the device that holds them: the pass of a sketch in torch operations.

No step waits for the device, so none depends on values: rows that are not to be counted are added
as zeros instead of being picked out.
"""

from __future__ import annotations

import torch
from torch import Tensor

from calibrant.sketches.cells import ABOVE, AT_ONE, AT_ZERO, BELOW, LOGIT_REACH, Cells


class TensorCells:
    """The cells of a sketch, for tensors: the table of edges on the device that asks."""

    def __init__(self, cells: Cells) -> None:
        self.cells = cells
        self._edges = torch.tensor(cells.edges)

    def locate(self, p: Tensor) -> tuple[Tensor, Tensor]:
        """Return the cell of each float64 score, and its offset from the centre in cell widths.

        Arithmetic guesses and the edges decide, as in :mod:`calibrant.sketches.cells`.
        """
        if self._edges.device != p.device:
            self._edges = self._edges.to(p.device)
        edges, n = self._edges, self.cells.n_cells
        place = self._guess(p)
        cell = place.nan_to_num().clamp(0, n - 1).long()
        cell = cell - (p < edges[cell]).long()
        cell = (cell + (p >= edges[cell + 1]).long()).clamp(0, n - 1)
        offset = place - cell - 0.5
        if self.cells.scale == "probability":
            return cell, offset
        below, above = p < edges[0], p >= edges[-1]
        cell = cell.where(~below, n + BELOW - (p == 0).long() * (BELOW - AT_ZERO))
        cell = cell.where(~above, n + ABOVE + (p == 1).long() * (AT_ONE - ABOVE))
        return cell, offset.where(~(below | above), 0.0)

    def _guess(self, p: Tensor) -> Tensor:
        if self.cells.scale == "probability":
            return p * self.cells.n_cells
        return (p.logit() + LOGIT_REACH) / self.cells.width


def add_rows(
    cells: TensorCells, counts: Tensor, offsets: Tensor, p: Tensor, outcome: Tensor, counted: Tensor
) -> None:
    """Add rows to a table in place.

    Parameters
    ----------
    cells
        Which score is counted where.
    counts
        The number of rows by outcome and cell, int64, shape (2, cells).
    offsets
        The sums of the offsets d and of d^2 by outcome and cell, float64, shape (2, 2, cells).
    p
        Scores, float64, shape (n,).
    outcome
        Whether each row's outcome is 1.
    counted
        Which rows to count; the scores of others may be anything.
    """
    cell, offset = cells.locate(p.where(counted, 0.5))
    place = cell + counts.shape[1] * outcome.long()
    offset = offset.where(counted, 0.0)
    counts.view(-1).index_add_(0, place, counted.long())
    offsets[0].view(-1).index_add_(0, place, offset)
    offsets[1].view(-1).index_add_(0, place, offset * offset)
