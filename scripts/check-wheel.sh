#!/usr/bin/env bash
# Tries the wheel on older systems: in a bare root of Ubuntu 18.04, whose glibc 2.27 is older than that of any system that is maintained, the programs that the wheel brings along
# run and compile; in one of Ubuntu 22.04 (glibc 2.35) its package runs tests of test/python under Python 3.11. Needs root, mmdebstrap, pip and Ubuntu's mirrors.
#   scripts/check-wheel.sh [WHEEL]    default: it is made into dist
set -eu
cd "$(dirname "$0")/.."
wheel=${1:-}
if [ -z "$wheel" ]; then
  scripts/make-wheel.sh dist
  wheel=$(ls dist/kjit-*.whl)
fi
mirror=http://archive.ubuntu.com/ubuntu
roots=$(mktemp -d)
trap 'umount "$roots"/*/proc 2> /dev/null || true; rm -rf --one-file-system "$roots"' EXIT

make_root() { # NAME PACKAGE...: roots/NAME with the wheel's files in /site
  local name=$1 packages=$2
  echo "check-wheel: a bare root of $name"
  mmdebstrap --quiet --variant=minbase --mode=root --include="$packages" "$name" "$roots/$name" \
    "deb [trusted=yes] $mirror $name main universe" "deb [trusted=yes] $mirror $name-updates main universe"
  mountpoint -q "$roots/$name/proc" || mount -t proc proc "$roots/$name/proc"
  mkdir -p "$roots/$name/site"
  unzip -q "$wheel" -d "$roots/$name/site"
}

make_root bionic ca-certificates
cat > "$roots/bionic/k.kir" <<'KERNEL'
kernel k(x) { for i in grid_range(len(x)) { x[i] = erf(x[i]) + exp(x[i]) } }
KERNEL
chroot "$roots/bionic" sh -eu <<'TRY'
for way in no yes; do
  /site/kjit/bin/kjit-run -q --no-cache --compile-in-child=$way k.kir --arg x=zeros:f32[3] --launch 'k(x)' --print x | grep -q '1 1 1'
done
/site/kjit/bin/kjit-compile k.kir -a sm_90 -s 'f32[:] C' -e ptx | grep -q '.visible .entry k'
/site/kjit/bin/kjit-cache list > /dev/null
echo "check-wheel: its programs run with $(ldd --version | head -1)"
TRY

make_root jammy python3.11
python3 -m pip download -q --no-deps --only-binary=:all: --python-version 3.11 --implementation cp --platform manylinux2014_x86_64 -d "$roots/numpy" numpy==1.26.4
unzip -q "$roots"/numpy/*.whl -d "$roots/jammy/site"
mkdir -p "$roots/jammy/test"
cp -r test/python test/*.py "$roots/jammy/test/"
chroot "$roots/jammy" sh -eu <<'TRY'
cd /test/python
for test in language functions arguments algorithms cuda cuda_forms njit; do
  PYTHONPATH=/site KJIT_DEVICE=cpu python3.11 $test.py > /log 2>&1 || { cat /log; echo "check-wheel: $test.py failed"; exit 1; }
done
echo "check-wheel: seven tests passed with $(ldd --version | head -1)"
TRY
