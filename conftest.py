"""What pytest leaves alone where its companions are not installed."""

from importlib.util import find_spec

# Rooms around a library cannot be imported without it.
collect_ignore_glob = [] if find_spec("torchmetrics") else ["src/calibrant/integrations/torch/*"]
