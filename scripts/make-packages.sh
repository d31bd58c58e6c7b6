#!/usr/bin/env bash
# Makes Debian packages: libkjit0, libkjit-dev, kjit-tools and kjit-doc, for apt install ./libkjit0_*.deb and so on; and debug symbols apart, libkjit0-dbgsym and kjit-tools-dbgsym as .ddeb
# files, which dpkg -i installs beside them and gdb finds.
#   scripts/make-packages.sh [FOLDER]    into FOLDER (default: dist)
set -eu
cd "$(dirname "$0")/.."
folder=${1:-dist}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
build=build/packages
multiarch=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
# -g: debug information of kjit's own code, and nothing else of the code changes. Debian 12 and all later ones load relocations that are packed, which makes the compiler 1.4 MB smaller.
cmake --preset release -B "$build" -DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_INSTALL_LIBDIR="lib/$multiarch" -DKJIT_TESTS=OFF -DCMAKE_C_FLAGS=-g \
  -DCMAKE_SHARED_LINKER_FLAGS=-Wl,-z,pack-relative-relocs
cmake --build "$build" -j "$(nproc)"
if [ "${KJIT_SHIPPED_KERNELS:-yes}" != no ]; then
  cmake --build "$build" -j "$(nproc)" --target kjit-kernels # minutes
else
  rm -f "$build/kernels/kernels.kjit" # of an earlier call
fi
(cd "$build" && cpack -G DEB -B "$folder" > packages.log 2>&1) || { cat "$build/packages.log" >&2; exit 1; }
rm -rf "$folder/_CPack_Packages"
python3 scripts/check-elf.py "$folder"/*.deb
ls -l "$folder"/*.deb "$folder"/*.ddeb
