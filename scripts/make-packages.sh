#!/usr/bin/env bash
# Makes Debian packages: libkjit0, libkjit-dev, kjit-tools and kjit-doc, for apt install ./libkjit0_*.deb and so on.
#   scripts/make-packages.sh [FOLDER]    into FOLDER (default: dist)
set -eu
cd "$(dirname "$0")/.."
folder=${1:-dist}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
build=build/packages
multiarch=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
# Debug information of kjit's own code; LLVM's archives bring none along.
cmake --preset release -B "$build" -DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_INSTALL_LIBDIR="lib/$multiarch" -DKJIT_TESTS=OFF
cmake --build "$build" -j "$(nproc)"
(cd "$build" && cpack -G DEB -B "$folder" > packages.log 2>&1) || { cat "$build/packages.log" >&2; exit 1; }
rm -rf "$folder/_CPack_Packages"
ls -l "$folder"/*.deb
