#!/usr/bin/env bash
# Makes a tarball for systems without packages of kjit: libraries, programs, headers, manual pages, licences. The unpacked folder works wherever it lies, without root, and needs glibc 2.27.
#   scripts/make-tarball.sh [FOLDER [BUILD]]    into FOLDER (default: dist), from the build tree BUILD (default: build/tarball, which is made)
# The result is FOLDER/kjit-VERSION-linux-x86_64.tar.xz. XZ_OPT holds options for xz (default: -9e).
# KJIT_SHIPPED_KERNELS=yes also makes FOLDER/kjit-VERSION-linux-x86_64-kernels.tar.xz with the compiled kernels of the algorithms, which take minutes to make, when the script makes
# the build tree. A build tree that has these kernels gets the second tarball, too. It unpacks into the same folder as the first one, and belongs to this very build.
set -eu
cd "$(dirname "$0")/.."
folder=${1:-dist}
build=${2:-}
limit_mb=20
if [ -z "$build" ]; then
  build=build/tarball
  cmake --preset bundle -B "$build" -DKJIT_TESTS=OFF
  cmake --build "$build" -j "$(nproc)"
  if [ "${KJIT_SHIPPED_KERNELS:-no}" != no ]; then
    cmake --build "$build" -j "$(nproc)" --target kjit-kernels # minutes
  else
    rm -f "$build/kernels/kernels.kjit" # of an earlier call
  fi
fi
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:[^=]*=//p' "$build/CMakeCache.txt")
name=kjit-$version-linux-$(uname -m)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tree=$scratch/$name
cmake --install "$build" --prefix "$tree" --strip > "$scratch/log" || { cat "$scratch/log" >&2; exit 1; }
find "$tree" -name kjit-arrow.so -delete # of a build beside Arrow: it works with that version of Arrow only
if grep -q '^KJIT_STATIC_RUNTIME:[^=]*=ON' "$build/CMakeCache.txt"; then
  python3 scripts/check-glibc.py 2.27 "$tree"
fi
mkdir -p "$folder"
pack() { # FOLDER NAME: the folder $name in FOLDER becomes NAME.tar.xz
  XZ_OPT=${XZ_OPT:--9e} tar -C "$1" --sort=name --owner=0 --group=0 --numeric-owner --mtime=@1577836800 -cJf "$folder/$2.tar.xz" "$name"
}
kernels=$(cd "$tree" && find . -name kernels.kjit)
if [ -n "$kernels" ]; then
  mkdir -p "$scratch/kernels/$name/$(dirname "$kernels")"
  mv "$tree/$kernels" "$scratch/kernels/$name/$kernels"
  pack "$scratch/kernels" "$name-kernels"
  echo "$folder/$name-kernels.tar.xz: $(($(stat -c %s "$folder/$name-kernels.tar.xz") / 1000000)) MB of compiled kernels"
fi
pack "$scratch" "$name"
python3 scripts/check-elf.py "$folder/$name.tar.xz"
size=$(stat -c %s "$folder/$name.tar.xz")
echo "$folder/$name.tar.xz: $((size / 1000000)).$((size / 100000 % 10)) MB, $(du -s --block-size=1MB "$tree" | cut -f 1) MB unpacked"
[ "$size" -le $((limit_mb * 1000000)) ] || { echo "make-tarball: over $limit_mb MB" >&2; exit 1; }
