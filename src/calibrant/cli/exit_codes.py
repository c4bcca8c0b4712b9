"""Exit codes: what a command line tells the one that called it."""

DONE = 0
EXCEEDED = 1
BAD_INPUT = 2
# As sysexits.h has it, and as shells do for what a signal ended.
OWN_FAULT = 70
INTERRUPTED = 130
OUTPUT_CLOSED = 141
