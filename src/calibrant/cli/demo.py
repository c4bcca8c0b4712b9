"""``calibrant demo``: the main job on bundled data."""

from __future__ import annotations

from calibrant.cli import options


def demo(json: options.Json = False) -> None:
    """Assess bundled forecasts of rain, solar flares and images."""
    from rich.text import Text

    from calibrant.assessment.assess import assess
    from calibrant.cli.messages import write_json
    from calibrant.cli.terminal import assessment_parts, show
    from calibrant.datasets import load_flares, load_imagenet, load_rain

    loaded = {
        "Rain in Tampere in 2003, forecast a day ahead": load_rain(),
        "Solar flares in 2016 and 2017, forecast by DAFFS": load_flares("DAFFS"),
        "Confidence of a ResNet-34 in its answers, 50 000 images": load_imagenet("resnet34"),
    }
    found = {title: assess(*data) for title, data in loaded.items()}
    if json:
        names = [data.name for data in loaded.values()]
        write_json({name: one.to_dict() for name, one in zip(names, found.values(), strict=True)})
        return
    for title, one in found.items():
        show(Text(title, style="bold underline"), "", *assessment_parts(one), "")
