"""The main job on bundled real data: are these forecasts calibrated, by how much not, and where?"""

import calibrant as cb
from calibrant import datasets


def describe(data: datasets.Dataset) -> None:
    """Print what calibrant has to say about one set of forecasts."""
    y_true, y_prob = data
    test = cb.cumulative_test(y_true, y_prob)
    curve = cb.reliability_curve(y_true, y_prob)
    bias = y_true.mean() - y_prob.mean()
    print(f"{data.name}: {data.n} forecasts, mean {y_prob.mean():.3f}, {y_true.mean():.3f} came true")
    print(f"  smooth calibration error {cb.smooth_ece(y_true, y_prob):.4f}")
    print(f"  15-bin calibration error {cb.ece(y_true, y_prob):.4f}")
    print(f"  mean outcome - mean forecast {bias:+.4f}")
    print(f"  chance of a deviation this large if calibrated {test.p_value:.2g}")
    gap = (curve.y - curve.x) * curve.density
    worst = abs(gap).argmax()
    side = "too low" if gap[worst] > 0 else "too high"
    print(f"  most is lost near {curve.x[worst]:.2f}, where forecasts are {side}")
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
