"""Real predictions with their outcomes, bundled with the package.

The files and the account of their origin are in ``data/``; they are as published.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from calibrant._base import FloatArray, Result
from calibrant.data.validation import check_choice

_FLARE_SYSTEMS = ("DAFFS", "NOAA", "SIDC")
_IMAGENET_MODELS = {"resnet34": "timm ResNet-34", "densenet161": "torchvision DenseNet-161"}


@dataclass(frozen=True, eq=False, repr=False)
class Dataset(Result):
    """Outcomes with the probabilities that were predicted for them.

    Iterating gives the two arrays in the order that every measure takes them, so
    ``y_true, y_prob = load_rain()`` and ``measure(*load_rain())`` both work. The arrays are
    read-only.

    Attributes
    ----------
    y_true : ndarray of uint8, shape (n,)
        The outcomes, 0 or 1.
    y_prob : ndarray of float64, shape (n,)
        The predicted probabilities of outcome 1.
    name : str
        A short name.
    source : str
        Where the values come from, and under which licence.
    """

    y_true: npt.NDArray[np.uint8]
    y_prob: FloatArray
    name: str
    source: str

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.y_true)

    def __iter__(self) -> Iterator[npt.NDArray[Any]]:
        yield self.y_true
        yield self.y_prob

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r}, n={self.n})"


@dataclass(frozen=True, eq=False, repr=False)
class ConfidenceDataset(Dataset):
    """The confidence of a classifier: `y_true` is whether the predicted class is the true one.

    `y_prob` is the probability of the predicted class.

    Attributes
    ----------
    true_label : ndarray of uint16, shape (n,)
        The index of the true class.
    pred_label : ndarray of uint16, shape (n,)
        The index of the predicted class.
    """

    true_label: npt.NDArray[np.uint16]
    pred_label: npt.NDArray[np.uint16]


def load_rain() -> Dataset:
    """Load 347 daily forecasts of rain in Tampere, Finland, in 2003.

    The probability, by the Finnish Meteorological Institute and in steps of a tenth, of more than
    0.2 mm of precipitation within 24 hours. Few distinct scores, many of them on bin edges.

    Returns
    -------
    Dataset
        `y_true` is 1 where it rained.

    See Also
    --------
    load_flares, load_imagenet : Other bundled forecasts.
    simulate : Forecasts with a known calibration error.

    Examples
    --------
    >>> y_true, y_prob = load_rain()
    >>> len(y_true), float(y_prob.max())
    (347, 1.0)
    """
    probability, rain = _columns("rain_finland_2003.csv", "probability", "rain")
    return Dataset(
        y_true=rain.astype(np.uint8),
        y_prob=probability,
        name="rain",
        source="Nurmi (2003), via NOAA-OWP/wres; public domain",
    )


def load_flares(system: Literal["DAFFS", "NOAA", "SIDC"] = "DAFFS") -> Dataset:
    """Load 731 daily forecasts of solar flares of class C1.0 or above, 2016 and 2017.

    Parameters
    ----------
    system : {"DAFFS", "NOAA", "SIDC"}
        The forecasting system. DAFFS gives six decimals, the others round to a hundredth or
        coarser.

    Returns
    -------
    Dataset
        `y_true` is 1 on days with a flare; every system has a forecast for each of the 731 days.

    See Also
    --------
    load_rain, load_imagenet : Other bundled forecasts.
    simulate : Forecasts with a known calibration error.

    Examples
    --------
    >>> load_flares("NOAA")
    Dataset(name='flares_NOAA', n=731)
    """
    check_choice(system, "system", _FLARE_SYSTEMS)
    probability, flare = _columns("solar_flares_c1.csv", system, "flare")
    return Dataset(
        y_true=flare.astype(np.uint8),
        y_prob=probability,
        name=f"flares_{system}",
        source="Leka et al. (2019), doi:10.7910/DVN/HYP74O, via TimoDimi/replication_DGJ20; CC0",
    )


def load_imagenet(model: Literal["resnet34", "densenet161"] = "resnet34") -> ConfidenceDataset:
    """Load a network's confidence in each of the 50 000 images of the ImageNet validation set.

    Parameters
    ----------
    model : {"resnet34", "densenet161"}
        ResNet-34 as trained in timm, or DenseNet-161 as trained in torchvision.

    Returns
    -------
    ConfidenceDataset
        `y_true` is 1 where the predicted class is right, `y_prob` the largest softmax
        probability; `true_label` and `pred_label` are class indices from 0 to 999.

    See Also
    --------
    load_rain, load_flares : Other bundled forecasts.
    simulate : Forecasts with a known calibration error.

    Examples
    --------
    >>> images = load_imagenet("densenet161")
    >>> images.n, int(images.pred_label[0])
    (50000, 394)
    """
    check_choice(model, "model", _IMAGENET_MODELS)
    confidence, correct, true_label, pred_label = _columns(
        f"imagenet_{model}.csv.gz", "confidence", "correct", "true_label", "pred_label"
    )
    return ConfidenceDataset(
        y_true=correct.astype(np.uint8),
        y_prob=confidence,
        name=model,
        source=(
            f"{_IMAGENET_MODELS[model]} on the ImageNet validation set, via "
            "hollance/reliability-diagrams; copyright 2020 M.I. Hollemans, MIT licence"
        ),
        true_label=true_label.astype(np.uint16),
        pred_label=pred_label.astype(np.uint16),
    )


def _columns(filename: str, *names: str) -> list[FloatArray]:
    """Read the named columns of a bundled file, in the order asked for."""
    raw = files(__package__).joinpath("data", filename).read_bytes()
    text = (gzip.decompress(raw) if filename.endswith(".gz") else raw).decode("ascii")
    header = text.partition("\n")[0].split(",")
    table = np.loadtxt(
        io.StringIO(text), delimiter=",", skiprows=1, usecols=[header.index(x) for x in names]
    )
    return [np.ascontiguousarray(column) for column in table.T]
