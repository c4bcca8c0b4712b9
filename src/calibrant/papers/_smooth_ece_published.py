"""The numbers of Błasiok and Nakkiran (2023), as printed or as their program gives them."""

from __future__ import annotations

# Data: rows, and the rate of outcome 1 where it is printed (section 4).
DATA = {
    "resnet34": {"n": "50000"},
    "flares DAFFS": {"n": "731", "rate": "0.257"},
    "rain": {"n": "346"},
}

# The smECE by relplot 1.0.3, the package released with the paper.
RELPLOT = {
    "resnet34": "0.077613",
    "flares DAFFS": "0.067399",
    "rain": "0.144287",
    "flares NOAA": "0.040485",
    "densenet161": "0.059902",
}
# The grid on which relplot smooths, and how far it halves the bandwidth.
RELPLOT_CELLS = 1000
RELPLOT_STEP = 2.0**-10

# Distribution: the ECE of 20 bins (appendix E).
FIGURE_3 = {1: "0.06", 3: "0.31"}

# The constant of footnote 2, and the power of m in theorem 9.
CONSTANT = "0.79"
POWER = "-0.50"
