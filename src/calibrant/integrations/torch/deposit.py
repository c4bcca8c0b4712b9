"""Rows into cells on the device that holds them: the pass of a sketch in torch operations.

No step waits for the device, so none depends on values: rows that are not to be counted are added
as zeros instead of being picked out.
"""

from __future__ import annotations

import torch
from torch import Tensor


def locate(p: Tensor, n_cells: int) -> tuple[Tensor, Tensor]:
    """Return the cell of each float64 score, and its offset from the centre in cell widths.

    Cell k holds k/N <= p < (k+1)/N with the correctly rounded k/N, and the last one also 1: the
    same as in :mod:`calibrant.sketches.cells`.
    """
    # A tensor, because by a plain number CUDA divides as it multiplies by the reciprocal, which
    # rounds twice and would put scores on an edge into the wrong cell.
    n = torch.full((), n_cells, dtype=torch.float64, device=p.device)
    place = p * n
    cell = place.floor()
    cell = cell - (p < cell / n).double()
    cell = cell + (p >= (cell + 1) / n).double()
    cell = cell.clamp(max=n_cells - 1)
    return cell.long(), place - cell - 0.5


def add_rows(counts: Tensor, offsets: Tensor, p: Tensor, outcome: Tensor, counted: Tensor) -> None:
    """Add rows to a table in place.

    Parameters
    ----------
    counts
        How many rows there are by outcome and cell, int64, shape (2, cells).
    offsets
        The sums of the offsets d and of d^2 by outcome and cell, float64, shape (2, 2, cells).
    p
        Scores, float64, shape (n,).
    outcome
        Whether each row's outcome is 1.
    counted
        Which rows to count; the scores of others may be anything.
    """
    n_cells = counts.shape[1]
    cell, offset = locate(p.where(counted, 0.0), n_cells)
    place = cell + n_cells * outcome.long()
    offset = offset.where(counted, 0.0)
    counts.view(-1).index_add_(0, place, counted.long())
    offsets[0].view(-1).index_add_(0, place, offset)
    offsets[1].view(-1).index_add_(0, place, offset * offset)
