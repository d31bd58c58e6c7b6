#!/usr/bin/env bash
# Makes the wheel of the package for Python: kjit-VERSION-cp310-abi3-manylinux_*.whl, with libkjit, libkjit-compiler and kjit-compile-child inside, stripped,
# and the programs of the shell where the build is one for other systems. It needs no network.
#   scripts/make-wheel.sh [FOLDER [BUILD]]    into FOLDER (default: dist), from the build tree BUILD (default: build/wheel, which is made)
# The build tree build/wheel makes the kernels that ship, too; KJIT_SHIPPED_KERNELS=no leaves them out.
# KJIT_PYTHON_PROGRAM names the Python whose headers are used. Free-threaded builds of Python and Python 3.10 get a wheel for their version only: cp314-cp314t, for example.
set -eu
cd "$(dirname "$0")/.."
folder=${1:-dist}
build=${2:-}
if [ -z "$build" ]; then
  build=build/wheel
  cmake --preset release -B "$build" -UKJIT_PYTHON_INCLUDE_DIR -UKJIT_PYTHON_PROGRAM ${KJIT_PYTHON_PROGRAM:+-DKJIT_PYTHON_PROGRAM="$KJIT_PYTHON_PROGRAM"} \
    -DKJIT_PYTHON=ON -DKJIT_TESTS=OFF -DKJIT_STATIC_RUNTIME=ON
  rm -f "$build"/python/kjit/_kjit.*.so # perhaps that of another Python
  cmake --build "$build" -j "$(nproc)" --target kjit-python kjit-python-package kjit-compile-child kjit-run kjit-compile kjit-cache
  if [ "${KJIT_SHIPPED_KERNELS:-yes}" != no ]; then
    cmake --build "$build" -j "$(nproc)" --target kjit-kernels # minutes
  else
    rm -f "$build/kernels/kernels.kjit" # of an earlier call
  fi
fi
if grep -q '^KJIT_STATIC_RUNTIME:[^=]*=ON' "$build/CMakeCache.txt"; then
  /usr/bin/env python3 scripts/check-glibc.py 2.27 "$build/lib" "$build/bin" "$build/python/kjit"
fi
mkdir -p "$folder"
/usr/bin/env python3 tools/python/packaging.py "$build" "$folder"
/usr/bin/env python3 scripts/check-elf.py "$folder"/*.whl
