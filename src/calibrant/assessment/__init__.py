"""The whole picture of a set of predictions: measures, tests and curves, in words and by group."""
