"""Point masses straight from their definition: score by score, over all rows."""

import numpy as np


def point_masses(y, p, w=None):
    """Return (score, mean outcome, share of weight) of each mass, and whether these are all."""
    y, p = np.asarray(y, dtype=float), np.asarray(p, dtype=float)
    w = np.ones(len(p)) if w is None else np.asarray(w, dtype=float)
    scores = np.unique(p)
    rows = [int((p == score).sum()) for score in scores]
    is_all = len(scores) <= 20 and len(p) >= 5 * len(scores)
    found = []
    for k, score in enumerate(scores):
        here = p == score
        share = w[here].sum() / w.sum()
        around = rows[max(k - 2, 0) : k] + rows[k + 1 : k + 3]
        stands_out = share >= 0.05 and rows[k] >= 30 and rows[k] >= 10 * np.median(around or [0])
        if is_all or stands_out:
            found.append((score, np.average(y[here], weights=w[here]), share))
    return found, is_all
