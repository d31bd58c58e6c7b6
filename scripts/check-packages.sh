#!/usr/bin/env bash
# Makes the Debian packages and tries the same packages on Debian 12, Debian 13 and Ubuntu 24.04, in a bare root of each: installs them, runs a kernel, builds and runs the README's C and
# C++ programs by pkg-config and an outside project by CMake, walks through the pages that teach (each file and each command as it stands there), and removes the packages again, after which the root has the files that it had.
# Needs root, mmdebstrap and the mirrors of Debian and Ubuntu.
#   scripts/check-packages.sh [FOLDER [RELEASE...]]    packages in FOLDER (default: they are made into dist), on the releases (default: bookworm trixie noble)
set -eu
cd "$(dirname "$0")/.."
folder=${1:-}
if [ -z "$folder" ]; then
  folder=dist
  scripts/make-packages.sh "$folder"
fi
python3 scripts/check-elf.py "$folder"/*.deb
shift $(($# > 0))
[ $# -gt 0 ] || set -- bookworm trixie noble
scratch=$(mktemp -d)
root=$scratch/root
trap 'umount "$root/proc" 2> /dev/null || true; rm -rf --one-file-system "$scratch"' EXIT

cat > "$scratch/try.sh" <<'TRY'
set -eu
export DEBIAN_FRONTEND=noninteractive HOME=/tmp/kjit
cd /tmp/kjit
quietly() { "$@" > log 2>&1 || { cat log >&2; exit 1; }; }
files() { find / -xdev \( -path /proc -o -path /tmp -o -path /var/lib/dpkg -o -path /var/lib/apt -o -path /var/cache -o -path /var/log \) -prune -o -print | sort; }
quietly apt-get update
quietly apt-get install -y --no-install-recommends gcc g++ libc6-dev pkg-config cmake make python3-minimal libpython3-stdlib libgomp1 libpng16-16 libzstd1 zlib1g
files > before
quietly apt-get install -y --no-install-recommends ./libkjit0_*.deb ./libkjit-dev_*.deb ./kjit-tools_*.deb ./kjit-doc_*.deb
kjit-run --version
# Algorithms whose kernels ship run without the compiler.
for kernels in /usr/lib/*/kjit-*/kernels.kjit; do
  [ -f "$kernels" ] || continue
  kjit-cache list --shipped > shipped
  compiler=$(echo /usr/lib/*/libkjit-compiler.so.*)
  mv "$compiler" away
  kjit-run -q --device cpu --checks none --arg x=arange:f32[1000] --call 's = reduce(x, add)' --call 'o = sort(x)' --print s | grep -q '499500'
  mv away "$compiler"
  echo "check-packages: compiled kernels run without the compiler; $(tail -n 1 shipped)"
done
sh -eu command.sh
gcc -Wall -Werror $(pkg-config --cflags kjit) host0.c $(pkg-config --libs kjit) -o host0
./host0
g++ -std=c++17 -Wall -Werror $(pkg-config --cflags kjit) host.cpp $(pkg-config --libs kjit) -o host
./host
quietly cmake -S project -B build
quietly cmake --build build
build/host
mapfile -t pages < pages
python3 -B tree/test/docs/check_pages.py tree walk installed "${pages[@]}"
# Debug symbols, for the very files that are installed, come and go beside them.
quietly dpkg -i ./libkjit0-dbgsym_*.ddeb ./kjit-tools-dbgsym_*.ddeb
for file in /usr/bin/kjit-run /usr/lib/*/libkjit.so.0 /usr/lib/*/libkjit-compiler.so.*; do
  id=$(readelf -n "$file" | sed -n 's/.*Build ID: //p')
  symbols=/usr/lib/debug/.build-id/$(echo "$id" | cut -c1-2)/$(echo "$id" | cut -c3-).debug
  readelf -S "$symbols" 2> /dev/null | grep -q '\.debug_info' || { echo "no debug symbols of $file: $symbols"; exit 1; }
  if readelf -S "$file" | grep -q '\.symtab'; then echo "not stripped: $file"; exit 1; fi
done
quietly apt-get purge -y libkjit0-dbgsym kjit-tools-dbgsym libkjit0 libkjit-dev kjit-tools kjit-doc
files > after
diff before after
echo "check-packages: installed, used and removed without a trace on $(. /etc/os-release && echo "$PRETTY_NAME")"
TRY

make_root() { # RELEASE
  local release=$1 components=main
  local mirror=http://deb.debian.org/debian
  [ "$release" != noble ] || mirror=http://archive.ubuntu.com/ubuntu components="main universe"
  echo "check-packages: a bare root of $release"
  rm -rf --one-file-system "$root"
  mmdebstrap --quiet --variant=minbase --mode=root --include=apt "$release" "$root" "deb [trusted=yes] $mirror $release $components"
  mountpoint -q "$root/proc" || mount -t proc proc "$root/proc" 2> /dev/null || true
  cp -r /etc/apt/apt.conf.d "$root/etc/apt/"
}

fill_root() {
  local work=$root/tmp/kjit
  mkdir -p "$work/project"
  cp "$folder"/*.deb "$folder"/*.ddeb "$work/"
  cp test/install/Inputs/* "$work/project/"
  # The pages that somebody reads who comes from CUDA C, in the order of reading, and what they name.
  pages=(docs/tutorial.md docs/from/cuda.md docs/cpp.md docs/howto/arrays.md docs/howto/reductions.md docs/howto/streams.md)
  mkdir -p "$work/tree/test/install"
  cp --parents -r "${pages[@]}" include test/install/packages.test test/docs/check_pages.py "$work/tree/"
  printf '%s\n' "${pages[@]}" > "$work/pages"
  python3 test/public/Inputs/readme_example.py README.md "$work" > "$work/command.sh"
  cp "$scratch/try.sh" "$work/"
}

for release in "$@"; do
  make_root "$release"
  fill_root
  # What the caller builds with, a compiler cache say, is not there.
  chroot "$root" env -u CMAKE_C_COMPILER_LAUNCHER -u CMAKE_CXX_COMPILER_LAUNCHER bash /tmp/kjit/try.sh
  umount "$root/proc" 2> /dev/null || true
done
