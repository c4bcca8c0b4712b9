"""Run tests as other processors would: other instructions, BLAS kernels, threads, hashes and order.

Usage: python tools/portable.py [--only SETTING] [--seed N] PYTEST-ARGUMENTS

Sums are added in other orders and products are rounded once or twice, so results differ in their
last bits. Each setting is one run of pytest. The seed of the order of tests and of Python's hashes
is printed; give it to repeat a run.
"""

import argparse
import os
import platform
import random
import subprocess
import sys

try:
    from numpy._core import _multiarray_umath as umath
except ImportError:  # numpy 1
    from numpy.core import _multiarray_umath as umath

# What numpy chooses from when it is imported, of what this processor has; it warns of other names.
DISPATCHED = [name for name in umath.__cpu_dispatch__ if umath.__cpu_features__.get(name)]
WIDE = [name for name in DISPATCHED if name == "X86_V4" or name.startswith("AVX512")]
HAS = {name for name, there in umath.__cpu_features__.items() if there}

# Kernels of OpenBLAS, each with what numpy calls the features that it needs.
KERNELS = {"Nehalem": {"SSE42"}, "Haswell": {"AVX2"}, "SkylakeX": {"AVX512_SKX", "X86_V4"}}


def setting(kernel: str, without: list[str], threads: int, plain: bool) -> dict[str, str]:
    """Return environment variables; plain spares numba, torch and libm all newer instructions."""
    chosen = {
        "NPY_DISABLE_CPU_FEATURES": " ".join(without),
        "OPENBLAS_NUM_THREADS": str(threads),
        "OMP_NUM_THREADS": str(threads),
        "NUMBA_NUM_THREADS": str(threads),
    }
    if KERNELS[kernel] & HAS:
        chosen["OPENBLAS_CORETYPE"] = kernel
    if plain:
        chosen |= {
            "NUMBA_CPU_NAME": "generic",
            "ATEN_CPU_CAPABILITY": "default",
            "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4",
        }
    return chosen


SETTINGS = {
    "oldest": setting("Nehalem", DISPATCHED, 2, plain=True),
    "avx2": setting("Haswell", WIDE, 2, plain=False),
    "avx512": setting("SkylakeX", [], 1, plain=False),
    "mixed": setting("Nehalem", [], 1, plain=True),
}


def main() -> int:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--only", choices=SETTINGS)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    own, arguments = parser.parse_known_args()
    failed = []
    for name in [own.only] if own.only else SETTINGS:
        chosen = SETTINGS[name] | {"PYTHONHASHSEED": str(own.seed), "TEST_ORDER": str(own.seed)}
        print(f"== {name}:", *(f"{key}={value!r}" for key, value in chosen.items()), flush=True)
        command = [sys.executable, "-m", "pytest", *arguments]
        if subprocess.run(command, env=os.environ | chosen, check=False).returncode:
            failed.append(name)
    if failed:
        print(f"failed on {platform.machine()} under: {', '.join(failed)} (--seed {own.seed})")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
