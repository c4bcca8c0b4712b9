"""Sources: tables and files of any engine, read once and kept as sketches."""
