"""The bootstrap by its definition: resample rows or whole clusters, measure, repeat."""

import numpy as np


def row_bootstrap(measure, y, p, w, n_resamples, rng):
    """Return the measure of samples of n rows drawn with replacement."""
    values = []
    for _ in range(n_resamples):
        rows = rng.integers(0, len(p), len(p))
        values.append(measure(y[rows], p[rows], sample_weight=w[rows]))
    return np.array(values)


def cluster_bootstrap(measure, y, p, groups, n_resamples, rng):
    """Return the measure of samples of as many clusters, drawn with replacement."""
    members = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    values = []
    for _ in range(n_resamples):
        drawn = rng.integers(0, len(members), len(members))
        rows = np.concatenate([members[cluster] for cluster in drawn])
        values.append(measure(y[rows], p[rows]))
    return np.array(values)


def calibrated_values(measure, p, w, n_resamples, rng):
    """Return the measure of samples with these scores whose outcomes are as predicted."""
    return np.array(
        [
            measure((rng.random(len(p)) < p).astype(float), p, sample_weight=w)
            for _ in range(n_resamples)
        ]
    )
