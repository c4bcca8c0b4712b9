"""What pytest leaves alone where its companions are not installed."""

from importlib.util import find_spec

# Rooms around a library cannot be imported without it.
_NEEDS = {
    "src/calibrant/compiled/kernels.py": "numba",
    "src/calibrant/integrations/torch/*": "torchmetrics",
    "src/calibrant/integrations/sklearn/*": "sklearn",
    "src/calibrant/recalibration/*": "sklearn",
    "src/calibrant/cli/*": "typer",
    "src/calibrant/report/*": "jinja2",
}
collect_ignore_glob = [room for room, library in _NEEDS.items() if not find_spec(library)]
