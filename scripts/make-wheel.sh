#!/usr/bin/env bash
# Makes the wheel of the package for Python: kjit-VERSION-cp311-abi3-manylinux_*.whl, with libkjit, libkjit-compiler and kjit-compile-child inside, stripped,
# and the programs of the shell where the build is one for other systems. It needs no network.
#   scripts/make-wheel.sh [FOLDER [BUILD]]    into FOLDER (default: dist), from the build tree BUILD (default: build/wheel, which is made)
set -eu
cd "$(dirname "$0")/.."
folder=${1:-dist}
build=${2:-}
if [ -z "$build" ]; then
  build=build/wheel
  cmake --preset release -B "$build" -DKJIT_PYTHON=ON -DKJIT_TESTS=OFF -DKJIT_STATIC_RUNTIME=ON
  cmake --build "$build" -j "$(nproc)" --target kjit-python kjit-python-package kjit-compile-child kjit-run kjit-compile kjit-cache
fi
if grep -q '^KJIT_STATIC_RUNTIME:[^=]*=ON' "$build/CMakeCache.txt"; then
  /usr/bin/env python3 scripts/check-glibc.py 2.27 "$build/lib" "$build/bin" "$build/python/kjit"
fi
mkdir -p "$folder"
/usr/bin/env python3 tools/python/make-wheel.py "$build" "$folder"
/usr/bin/env python3 scripts/check-elf.py "$folder"/*.whl
