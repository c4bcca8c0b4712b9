"""Rows that every cluster is given."""

import numpy as np
import pytest

import calibrant as cb


@pytest.fixture(scope="session")
def columns():
    """Return scores on edges, next to them and between, with outcomes, weights and groups."""
    rng = np.random.default_rng(0)
    k = np.concatenate([cb.Sketch(scale=scale).cells.edges for scale in ("probability", "logit")])
    p = np.concatenate((k, np.nextafter(k, 0), np.nextafter(k, 1), rng.random(20_000)))
    p = rng.permutation(p[p <= 1])
    return {
        "p": p,
        "y": (rng.random(len(p)) < p).astype(np.int64),
        "s": rng.random(len(p)),
        "w": rng.exponential(size=len(p)) * (rng.random(len(p)) < 0.9),
        "g": rng.choice(["a", "b"], len(p)),
    }
