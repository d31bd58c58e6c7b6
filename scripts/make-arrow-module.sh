#!/bin/sh
# Compiles kjit-arrow.so, the module with which kjit-run reads Parquet and Arrow files, for one version of Arrow's C++
# library. It needs a compiler for C++20 and nothing else of kjit's build.
#
#     scripts/make-arrow-module.sh FOLDER
#
# FOLDER: where kjit-run looks for the module. The error of kjit-run about a Parquet file names this folder. The
# environment: CXX is the compiler (c++). PYTHON is a Python program whose package pyarrow has the library. Without
# PYTHON, pkg-config finds the library of the system (libparquet-dev), or else the package pyarrow of python3 is used.
set -eu
[ $# -eq 1 ] || { echo "usage: scripts/make-arrow-module.sh FOLDER" >&2; exit 2; }
source=$(cd "$(dirname "$0")/../tools/arrow" && pwd)/reader.cpp
if [ -z "${PYTHON-}" ] && pkg-config --exists arrow parquet 2>/dev/null; then
  flags=$(pkg-config --cflags --libs arrow parquet)
else
  flags=$("${PYTHON-python3}" - <<'END'
try:
    import pyarrow
except ImportError:
    raise SystemExit("Arrow's C++ library is not there: install libparquet-dev, or set PYTHON to a Python program with the package pyarrow")
folder, version = pyarrow.get_library_dirs()[0], getattr(pyarrow.cpp_build_info, "so_version", None)
if version is None:
    raise SystemExit(f"pyarrow {pyarrow.__version__} does not tell the version of its libraries: install a newer one, or libparquet-dev")
print(f"-I{pyarrow.get_include()} {folder}/libparquet.so.{version} {folder}/libarrow.so.{version} -Wl,-rpath,{folder}")
END
  )
fi
mkdir -p "$1"
# shellcheck disable=SC2086 # the flags are words
"${CXX-c++}" -std=c++20 -O2 -shared -fPIC -fvisibility=hidden "$source" -o "$1/kjit-arrow.so" $flags
echo "$1/kjit-arrow.so"
