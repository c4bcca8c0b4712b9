"""Loess straight from its definition: one weighted least-squares fit per row."""

import numpy as np


def loess(y, p, w=None, span=0.75, degree=2):
    """Return the local fit at every row: tricube weights over the nearest floor(span n) rows.

    With weights the window holds the same fraction of the weight.
    """
    y, p = np.asarray(y, dtype=float), np.asarray(p, dtype=float)
    w = np.ones(len(p)) if w is None else np.asarray(w, dtype=float)
    held = np.floor(span * len(p) + 1e-5) / len(p) * w.sum()
    fitted = np.empty(len(p))
    for i, x in enumerate(p):
        distance = np.abs(p - x)
        order = np.argsort(distance)
        reach = distance[order][np.argmax(np.cumsum(w[order]) >= held * (1 - 1e-12))]
        if reach == 0:
            kernel = (distance == 0).astype(float)
        else:
            kernel = np.where(distance < reach, (1 - (distance / reach) ** 3) ** 3, 0.0)
        root = np.sqrt(w * kernel)
        design = np.vander(p - x, degree + 1, increasing=True)
        fitted[i] = np.linalg.lstsq(design * root[:, None], y * root, rcond=None)[0][0]
    return fitted
