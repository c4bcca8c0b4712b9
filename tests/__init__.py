"""Tests of calibrant."""

# How many seconds a test waits for another process, which may be slow on a busy machine, before it
# fails. No test takes longer for it.
PATIENCE = 600
