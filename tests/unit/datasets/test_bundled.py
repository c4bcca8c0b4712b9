"""The bundled data: read as published, and giving the reference values."""

import json
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from calibrant import CalibrantError
from calibrant.datasets import ConfidenceDataset, Dataset, load_flares, load_imagenet, load_rain

REFERENCES = json.loads(
    (Path(__file__).parents[2] / "references" / "reference_values.json").read_text()
)
LOADERS = {
    "rain": load_rain,
    "flares_DAFFS": lambda: load_flares("DAFFS"),
    "flares_NOAA": lambda: load_flares("NOAA"),
    "resnet34": lambda: load_imagenet("resnet34"),
    "densenet161": lambda: load_imagenet("densenet161"),
}


def slow_ece(y_true, y_prob, n_bins):
    """Binned ECE, closed on the left, row by row."""
    gaps = [0.0] * n_bins
    for y, p in zip(y_true.tolist(), y_prob.tolist(), strict=True):
        bin_ = max(k for k in range(n_bins) if k / n_bins <= p)
        gaps[bin_] += y - p
    return sum(abs(gap) for gap in gaps) / len(y_true)


def test_slow_ece_by_hand():
    # 0.5 opens the second of two bins: |0 - 0.25| + |1 - 0.5|, over two rows.
    assert slow_ece(np.array([0, 1]), np.array([0.25, 0.5]), 2) == 0.375


@pytest.mark.parametrize("name", sorted(LOADERS))
def test_reference_values(name):
    data, expected = LOADERS[name](), REFERENCES[name]
    assert data.name == name
    assert data.n == len(data.y_prob) == expected["n"]
    for n_bins in (10, 15):
        ece = slow_ece(data.y_true, data.y_prob, n_bins)
        assert ece == pytest.approx(expected[f"ece{n_bins}"], abs=1e-12)


def test_sidc_has_a_forecast_for_every_day():
    sidc = load_flares("SIDC")
    assert sidc.n == 731
    assert sidc.y_prob[:3].tolist() == [0.75, 0.7, 0.8]
    assert np.array_equal(sidc.y_true, load_flares("DAFFS").y_true)


def test_flare_days_as_in_the_literature():
    # Błasiok and Nakkiran (2023), Section 4: 25.7% of 731 days.
    assert round(100 * float(load_flares().y_true.mean()), 1) == 25.7


def test_first_rows_as_given():
    assert load_rain().y_prob[:4].tolist() == [0.3, 0.1, 0.1, 0.2]
    assert load_flares("DAFFS").y_prob[0] == 0.778454
    assert load_imagenet("resnet34").y_prob[0] == 0.3565460443496704


@pytest.mark.parametrize("model", ["resnet34", "densenet161"])
def test_imagenet_labels_say_what_is_correct(model):
    images = load_imagenet(model)
    assert isinstance(images, ConfidenceDataset)
    assert np.array_equal(images.y_true, images.true_label == images.pred_label)
    # The validation set has fifty images of each class.
    assert np.bincount(images.true_label).tolist() == [50] * 1000
    assert images.pred_label.max() <= 999


@pytest.mark.parametrize("load", LOADERS.values(), ids=list(LOADERS))
def test_arrays_are_typed_and_read_only(load):
    data = load()
    y_true, y_prob = data
    assert y_true is data.y_true
    assert y_prob is data.y_prob
    assert y_true.dtype == np.uint8
    assert y_prob.dtype == np.float64
    for array in (value for value in vars(data).values() if isinstance(value, np.ndarray)):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_a_dataset_leaves_the_callers_arrays_writeable():
    mine = np.array([0.25, 0.75])
    data = Dataset(y_true=np.array([0, 1], np.uint8), y_prob=mine, name="mine", source="here")
    assert mine.flags.writeable
    assert not data.y_prob.flags.writeable
    assert repr(data) == "Dataset(name='mine', n=2)"


@pytest.mark.parametrize("load", LOADERS.values(), ids=list(LOADERS))
def test_every_source_names_a_licence(load):
    assert any(word in load().source for word in ("public domain", "CC0", "MIT"))


def test_every_data_file_is_documented():
    folder = files("calibrant.datasets").joinpath("data")
    account = folder.joinpath("README.md").read_text(encoding="utf-8")
    for file in folder.iterdir():
        assert file.name == "README.md" or f"`{file.name}`" in account


def test_unknown_names_are_refused():
    with pytest.raises(CalibrantError, match="system must be one of 'DAFFS', 'NOAA', 'SIDC'; got"):
        load_flares("daffs")
    with pytest.raises(CalibrantError, match=r"model must be one of .* got 'vgg'"):
        load_imagenet("vgg")
