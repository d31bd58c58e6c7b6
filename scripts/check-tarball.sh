#!/usr/bin/env bash
# Tries the tarball in a bare root of Ubuntu 18.04, whose glibc 2.27 is older than that of any maintained system, as a user without rights: unpacks it in a home directory, runs the
# programs, runs a kernel in this process and in a child process, compiles PTX, moves the folder and does so again. Needs root, mmdebstrap and Ubuntu's mirrors.
#   scripts/check-tarball.sh [TARBALL]    default: it is made into dist
set -eu
cd "$(dirname "$0")/.."
tarball=${1:-}
if [ -z "$tarball" ]; then
  scripts/make-tarball.sh dist
  tarball=$(ls dist/kjit-*-linux-"$(uname -m)".tar.xz)
fi
root=$(mktemp -d)
trap 'umount "$root/proc" 2> /dev/null || true; rm -rf --one-file-system "$root"' EXIT
echo "check-tarball: a bare root of Ubuntu 18.04"
mmdebstrap --quiet --variant=minbase --mode=root --include=xz-utils bionic "$root" "deb [trusted=yes] http://archive.ubuntu.com/ubuntu bionic main"
mountpoint -q "$root/proc" || mount -t proc proc "$root/proc"
chroot "$root" useradd --create-home someone
cp "$tarball" "$root/home/someone/"
cat > "$root/home/someone/kernel.kir" <<'KERNEL'
kernel k(x) { for i in grid_range(len(x)) { x[i] = erf(x[i]) + exp(x[i]) } }
KERNEL
cat > "$root/home/someone/try.sh" <<'TRY'
set -eu
cd
tar -xJf kjit-*.tar.xz
mv kjit-*-linux-*/ first
try() { # FOLDER
  for way in no yes; do
    "$1/bin/kjit-run" -q --no-cache --compile-in-child=$way kernel.kir --arg x=zeros:f32[3] --launch 'k(x)' --print x | grep -q '1 1 1'
  done
  "$1/bin/kjit-compile" kernel.kir -a sm_90 -s 'f32[:] C' -e ptx | grep -q '.visible .entry k'
  "$1/bin/kjit-cache" list > /dev/null
  test -s "$1/include/kjit/kjit.h" && test -s "$1/share/doc/kjit/LICENSE" && test -s "$1/share/doc/kjit/NOTICE" && test -s "$1/share/man/man1/kjit-run.1"
}
try first
mkdir 'a folder'
mv first 'a folder/kjit'
try 'a folder/kjit'
ln -s 'a folder/kjit/bin/kjit-run' run
./run --version
echo "check-tarball: it runs with $(ldd --version | head -1)"
TRY
chroot "$root" su someone -c 'bash ~/try.sh'
