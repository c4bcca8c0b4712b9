"""The main job on bundled real data: are these forecasts calibrated, by how much not, and where?"""

import numpy as np

import calibrant as cb
from calibrant import datasets


def describe(data: datasets.Dataset) -> None:
    """Print what calibrant has to say about one set of forecasts."""
    y_true, y_prob = data
    table = cb.bin_table(y_true, y_prob, n_bins=10)
    worst = np.nanargmax(table.weight * np.abs(table.gap))
    side = "too low" if table.gap[worst] > 0 else "too high"
    test = cb.cumulative_test(y_true, y_prob)
    print(f"{data.name}: {data.n} forecasts")
    print(f"  mean forecast {y_prob.mean():.3f}, mean outcome {y_true.mean():.3f}")
    print(f"  smooth calibration error {cb.smooth_ece(y_true, y_prob):.4f}")
    print(f"  15-bin calibration error {cb.ece(y_true, y_prob):.4f}")
    chance = f"{test.p_value:.2g}" if test.p_value > 1e-300 else "below 1e-300"
    print(f"  chance of a deviation this large if calibrated: {chance}")
    low, high = table.edges[worst], table.edges[worst + 1]
    print(f"  most is lost from {low:.1f} to {high:.1f}, where forecasts are {side}")
    print()


def main() -> None:
    """Assess forecasts of rain and of solar flares, and the confidence of an image classifier."""
    for data in (
        datasets.load_rain(),
        datasets.load_flares("DAFFS"),
        datasets.load_imagenet("resnet34"),
    ):
        describe(data)
    print("Rain in Tampere, bin by bin:")
    print(cb.bin_table(*datasets.load_rain(), n_bins=10))


if __name__ == "__main__":
    main()
