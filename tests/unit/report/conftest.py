"""Assessments to show."""

from dataclasses import replace

import numpy as np
import pytest

from calibrant import Sketch, assess
from calibrant.datasets import simulate
from calibrant.reporting.figures import read_models

FEW = {"n_resamples": 50}


def without_bands(assessment):
    """Return an assessment whose curves have no bands."""
    curves = tuple(
        replace(one, low=one.y * np.nan, high=one.y * np.nan, band=None, simultaneous=False)
        for one in assessment.curves
    )
    return replace(assessment, curves=curves)


@pytest.fixture(scope="session")
def found():
    drawn = simulate("overconfident", 2000, rng=1)
    return without_bands(assess(drawn.y_true, drawn.y_prob, **FEW))


@pytest.fixture(scope="session")
def banded(found):
    """Return the assessment with bands of our own making around its curves."""
    curves = tuple(
        replace(one, low=one.y - 0.1, high=one.y + 0.1, band="confidence", level=0.9)
        for one in found.curves
    )
    return replace(found, curves=curves)


@pytest.fixture(scope="session")
def sketched():
    drawn = simulate("perfect", 500, rng=2)
    return assess(Sketch().update(drawn.y_true, drawn.y_prob), **FEW)


@pytest.fixture(scope="session")
def odd():
    """Return assessments with next to nothing in them."""
    rng = np.random.default_rng(0)
    return {
        "one row": assess([1], [0.3], **FEW),
        "one score": assess([0, 1] * 50, [0.2] * 100, **FEW),
        "certain": assess([0, 1, 1], [0, 1, 1], **FEW),
        "soft": assess(rng.random(100), rng.random(100), **FEW),
        "tiny": without_bands(assess([0] * 50, rng.random(50) * 1e-2, **FEW)),
        "weighted": assess([0, 1] * 50, rng.random(100), sample_weight=np.arange(100), **FEW),
    }


@pytest.fixture
def model(found):
    return read_models(found)[0]
