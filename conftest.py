"""What pytest leaves alone where its companions are not installed."""

from importlib.util import find_spec

# Modules that wrap a library cannot be imported without it.
_NEEDS = {
    "src/calibrant/numerics/compiled.py": "numba",
    "src/calibrant/integrations/torch.py": "torchmetrics",
    "src/calibrant/integrations/sklearn.py": "sklearn",
    "src/calibrant/recalibration/*": "sklearn",
    "src/calibrant/cli/*": "typer",
    "src/calibrant/reporting/*": "jinja2",
}
collect_ignore_glob = [module for module, library in _NEEDS.items() if not find_spec(library)]
