"""The numbers printed in Arrieta-Ibarra et al. (2022), as printed."""

from __future__ import annotations

# Statistic: its value, the same over sigma, and its P-value.
FIGURE_7 = {"max": ("0.01243", "5.512", "7.1e-08"), "range": ("0.02291", "10.16", "0")}

# Figure, statistic, value over sigma, P-value: "0" is "zero to double precision".
P_VALUES = (
    ("Figure 7", "max", "5.512", "7.1e-08"),
    ("Figure 7", "range", "10.16", "0"),
    ("Figure 14", "max", "6.607", "7.8e-11"),
    ("Figure 14", "range", "6.780", "4.8e-11"),
    ("Figure 18", "max", "5.446", "1.0e-07"),
    ("Figure 18", "range", "8.267", "0"),
    ("Figure 22", "max", "4.274", "3.8e-05"),
    ("Figure 22", "range", "5.186", "8.6e-07"),
    ("Figure 26", "max", "10.14", "0"),
    ("Figure 26", "range", "10.23", "0"),
    ("Figure 30", "max", "8.004", "0"),
    ("Figure 30", "range", "8.008", "0"),
    ("Figure 34", "max", "111.7", "0"),
    ("Figure 34", "range", "111.7", "0"),
)

# ImageNet: each class shown, and its index.
CLASSES = {
    "night snake": 60,
    "sidewinder": 68,
    "Eskimo dog": 248,
    "wild boar": 342,
    "sunglasses": 837,
}

# ResNet-18 on the training set: n, then ECCE-MAD and ECCE-R, each with its value over sigma.
RESNET_18 = {
    "all": ("1 281 167", "0.03306", "111.7", "0.03306", "111.7"),
    "night snake": ("1300", "0.08059", "6.607", "0.08270", "6.780"),
    "sidewinder": ("1300", "0.07081", "5.446", "0.1075", "8.267"),
    "Eskimo dog": ("1300", "0.05534", "4.274", "0.06715", "5.186"),
    "wild boar": ("1300", "0.1161", "10.14", "0.1172", "10.23"),
    "sunglasses": ("1300", "0.09972", "8.004", "0.09977", "8.008"),
}

# What figure 10 hovers around, section 3.1.
LIMITS = {"ECCE-MAD / sigma": "1.2533", "ECCE-R / sigma": "1.5958"}
