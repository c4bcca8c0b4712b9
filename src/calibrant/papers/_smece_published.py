"""The numbers printed in Leznik (2026), tables 2 to 8, as printed."""

from __future__ import annotations

MODELS = {
    "A": "posterior-matching",
    "B": "overconfident",
    "C": "underconfident",
    "D": "biased high",
    "E": "random",
}
STEEPNESS = (0.5, 1.0, 2.0, 5.0, 10.0, 50.0)
SIZES = (500, 1000, 2000, 5000, 10_000)


def _columns(text: str) -> dict[str, tuple[str, ...]]:
    lines = [line.split() for line in text.strip().splitlines()]
    return {name.replace("_", " "): tuple(numbers) for name, *numbers in lines}


# Model: SMECE and ECE of one sample, k = 2, n = 5000.
TABLE_2 = _columns("""
A 0.0000 0.1159
B 0.0759 0.0401
C 0.1369 0.2529
D 0.0977 0.1461
E 0.2409 0.2398
""")
# Their ranks, 1 for the least error.
TABLE_2_RANKS = _columns("""
A 1 2
B 2 1
C 4 5
D 3 3
E 5 4
""")

# Model: the error of one sample, n = 5000, at each k.
TABLE_3 = _columns("""
A 0.0000 0.0000 0.0000 0.0000 0.0000 0.0000
B 0.1770 0.1367 0.0764 0.0301 0.0153 0.0028
C 0.0979 0.1435 0.1368 0.0687 0.0345 0.0070
D 0.1500 0.1180 0.0978 0.0831 0.0804 0.0751
E 0.2518 0.2585 0.2498 0.2452 0.2427 0.2519
""")
TABLE_4 = _columns("""
A 0.3287 0.2143 0.1169 0.0455 0.0241 0.0041
B 0.1517 0.0777 0.0405 0.0154 0.0088 0.0013
C 0.4266 0.3579 0.2536 0.1142 0.0586 0.0111
D 0.2837 0.2050 0.1448 0.1018 0.0916 0.0765
E 0.2555 0.2560 0.2555 0.2438 0.2431 0.2524
""")

# Measure: the share of pairs ranked rightly at each k, 1000 samples of n = 1000.
TABLE_5 = _columns("""
SMECE 0.900 0.800 0.900 1.000 1.000 1.000
ECE   0.403 0.605 0.747 0.800 0.900 0.900
""")

# Pair: how often SMECE and ECE rank it rightly at k = 2.
TABLE_6 = _columns("""
A_vs_B 1.000 0.000
A_vs_C 1.000 1.000
A_vs_D 1.000 1.000
A_vs_E 1.000 1.000
B_vs_C 1.000 1.000
B_vs_D 1.000 1.000
B_vs_E 1.000 1.000
C_vs_D 0.000 0.000
C_vs_E 1.000 0.961
D_vs_E 1.000 1.000
""")

# Model: mean and standard deviation over 500 samples, k = 2, at each n.
TABLE_7_MEANS = _columns("""
A 0.0000 0.0000 0.0000 0.0000 0.0000
B 0.0766 0.0766 0.0766 0.0766 0.0766
C 0.1374 0.1375 0.1376 0.1375 0.1375
D 0.0967 0.0966 0.0966 0.0966 0.0967
E 0.2528 0.2505 0.2502 0.2496 0.2500
""")
TABLE_7_DEVIATIONS = _columns("""
A 0.0000 0.0000 0.0000 0.0000 0.0000
B 0.0034 0.0024 0.0017 0.0010 0.0008
C 0.0020 0.0015 0.0011 0.0007 0.0005
D 0.0031 0.0022 0.0016 0.0010 0.0007
E 0.0180 0.0134 0.0092 0.0061 0.0045
""")
TABLE_8_MEANS = _columns("""
A 0.1152 0.1152 0.1149 0.1151 0.1151
B 0.0386 0.0386 0.0384 0.0385 0.0385
C 0.2526 0.2526 0.2526 0.2526 0.2526
D 0.1444 0.1443 0.1439 0.1441 0.1442
E 0.2546 0.2512 0.2507 0.2497 0.2501
""")
TABLE_8_DEVIATIONS = _columns("""
A 0.0062 0.0044 0.0031 0.0020 0.0013
B 0.0043 0.0031 0.0022 0.0014 0.0009
C 0.0055 0.0040 0.0027 0.0018 0.0012
D 0.0072 0.0052 0.0038 0.0023 0.0017
E 0.0212 0.0157 0.0111 0.0075 0.0053
""")
