"""Binned errors against other libraries, where their definitions agree with ours.

Peers close bins on the right or on the left; the data keeps away from what they get wrong:
predictions on edges, at 1, in float16, or not between 0 and 1.
"""

import numpy as np
import pytest

import calibrant as cb

RNG = np.random.default_rng(11)
N = 3000
P = RNG.beta(0.8, 0.6, N)
Y = (RNG.random(N) < P**1.3).astype(int)
PROBS = RNG.dirichlet(np.full(4, 0.7), N)
LABELS = np.array([RNG.choice(4, p=row) for row in PROBS**0.7 / (PROBS**0.7).sum(1)[:, None]])


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_bin_means_of_scikit_learn(strategy):
    calibration = pytest.importorskip("sklearn.calibration")
    true, pred = calibration.calibration_curve(Y, P, n_bins=10, strategy=strategy)
    table = cb.bin_table(Y, P, n_bins=10, strategy=strategy)
    np.testing.assert_allclose(table.mean_true, true, atol=1e-12)
    np.testing.assert_allclose(table.mean_pred, pred, atol=1e-12)


@pytest.mark.parametrize("norm", ["l1", "l2", "max"])
@pytest.mark.parametrize("n_bins", [7, 10, 15])
def test_torchmetrics_binary(norm, n_bins):
    torch = pytest.importorskip("torch")
    functional = pytest.importorskip("torchmetrics.functional.classification")
    theirs = functional.binary_calibration_error(
        torch.tensor(P, dtype=torch.float64), torch.tensor(Y), n_bins=n_bins, norm=norm
    )
    ours = cb.ece(Y, P, n_bins=n_bins, norm=norm, closed="right")
    assert ours == pytest.approx(float(theirs), abs=1e-12)


@pytest.mark.parametrize("norm", ["l1", "l2", "max"])
def test_torchmetrics_multiclass(norm):
    torch = pytest.importorskip("torch")
    functional = pytest.importorskip("torchmetrics.functional.classification")
    theirs = functional.multiclass_calibration_error(
        torch.tensor(PROBS), torch.tensor(LABELS), num_classes=4, n_bins=15, norm=norm
    )
    # Its bins and means are float32 whatever the input: seven digits are all there are.
    assert cb.ece(LABELS, PROBS, norm=norm) == pytest.approx(float(theirs), rel=1e-6)


def test_netcal():
    metrics = pytest.importorskip("netcal.metrics", reason="netcal is installed by `make bench`")
    theirs = metrics.ECE(15).measure(PROBS, LABELS)
    assert cb.ece(LABELS, PROBS, closed="right") == pytest.approx(theirs, abs=1e-12)
    theirs = metrics.MCE(15).measure(PROBS, LABELS)
    assert cb.mce(LABELS, PROBS, closed="right") == pytest.approx(theirs, abs=1e-12)


def test_relplot():
    metrics = pytest.importorskip("relplot.metrics")
    assert cb.ece(Y, P, n_bins=20) == pytest.approx(
        float(metrics.binnedECE(P, Y, nbins=20)), abs=1e-12
    )


def test_probcal():
    metrics = pytest.importorskip("probcal.metrics")
    assert cb.ece(Y, P, n_bins=15) == pytest.approx(float(metrics.ece(Y, P, n_bins=15)), abs=1e-12)
