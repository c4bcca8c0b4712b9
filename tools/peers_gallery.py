"""Draw other packages' diagrams of the bundled data, for the gallery.

Usage: python tools/peers_gallery.py [FOLDER]

They are kept in docs/gallery/peers; run this in the environment of `make bench`, which has the
packages, after a change of their versions.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import numpy as np
import polars as pl
import relplot
from matplotlib import pyplot as plt
from model_diagnostics.calibration import plot_bias, plot_reliability_diagram

import calibrant as cb

FLARES = cb.datasets.load_flares("DAFFS")
_SIZE, _DPI = (5.0, 5.0), 80


def _relplot_smooth() -> None:
    relplot.rel_diagram(FLARES.y_prob, FLARES.y_true)


def _relplot_binned() -> None:
    relplot.rel_diagram_binned(FLARES.y_prob, FLARES.y_true, nbins=10)


def _diagnostics_isotonic() -> None:
    plot_reliability_diagram(FLARES.y_true, FLARES.y_prob, n_bootstrap=200, ax=_axes())


def _diagnostics_bias() -> None:
    month = pl.Series("month", np.arange(FLARES.n) * 24 // FLARES.n + 1)  # of two years
    plot_bias(y_obs=FLARES.y_true, y_pred=FLARES.y_prob, feature=month, ax=_axes())


def _axes() -> plt.Axes:
    mpl.rc_file_defaults()  # relplot sets a style for all that is drawn after it
    return plt.subplots(figsize=_SIZE, layout="constrained")[1]


PICTURES: dict[str, Callable[[], None]] = {
    "relplot-smooth": _relplot_smooth,
    "relplot-binned": _relplot_binned,
    "model-diagnostics-isotonic": _diagnostics_isotonic,
    "model-diagnostics-bias": _diagnostics_bias,
}


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    relplot.config.use_tex_fonts = False
    for name, draw in PICTURES.items():
        np.random.seed(0)  # noqa: NPY002  both packages draw from numpy's global generator
        draw()
        figure = plt.gcf()
        figure.savefig(folder / f"{name}.png", dpi=_DPI, bbox_inches="tight")
        plt.close(figure)


if __name__ == "__main__":
    mpl.use("agg")
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/gallery/peers"))
