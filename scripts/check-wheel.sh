#!/usr/bin/env bash
# Tries the wheel on other systems and with other versions of Python and NumPy. In a bare root of Ubuntu 18.04, whose glibc 2.27 is older than that of any maintained system, the
# programs of the wheel run and compile. In roots of Ubuntu 22.04 and 24.04, Debian 13 and Debian's unstable release, pip installs the wheel with its dependencies, and tests
# of test/python run under Python 3.10, 3.12, 3.13 and 3.14 with NumPy from 1.26 to 2.4. The root of Ubuntu 24.04 has no CUDA toolkit: there the extra `cuda` brings libdevice and ptxas.
# With PYTHON, the same tests run in a virtual environment of each given Python instead: a free-threaded one, for example, for which Debian has no package.
#   scripts/check-wheel.sh [WHEEL [PYTHON...]]    default: pip makes the wheel from a source distribution, both in dist
# Needs pip and PyPI, and for the roots: root, mmdebstrap, the mirrors of Ubuntu and Debian.
set -eu
cd "$(dirname "$0")/.."
tests="language functions arguments algorithms cuda_basics cuda_forms njit python_forms"
scratch=$(mktemp -d)
trap 'umount "$scratch"/*/proc 2> /dev/null || true; rm -rf --one-file-system "$scratch"' EXIT

wheel=${1:-}
if [ -z "$wheel" ]; then
  mkdir -p dist
  rm -f dist/kjit-*.whl dist/kjit-*.tar.gz
  source=$(python3 tools/python/packaging.py --sdist dist)
  echo "check-wheel: pip makes the wheel from $source"
  python3 -m pip wheel -q --disable-pip-version-check --no-deps -w dist "$source" > "$scratch/log" 2>&1 || { cat "$scratch/log" >&2; exit 1; }
  wheel=$(ls dist/kjit-*.whl)
fi
shift $(($# > 0))

for python in "$@"; do
  "$python" -m venv "$scratch/environment"
  "$scratch/environment/bin/pip" install -q --disable-pip-version-check --only-binary=:all: "$wheel"
  for test in $tests; do
    (cd test/python && KJIT_DEVICE=cpu "$scratch/environment/bin/python" "$test.py") > "$scratch/log" 2>&1 || { cat "$scratch/log"; echo "check-wheel: $test.py failed with $python"; exit 1; }
  done
  "$scratch/environment/bin/kjit-run" --version > /dev/null
  echo "check-wheel: the tests passed with $("$scratch/environment/bin/python" -VV | head -1), NumPy $("$scratch/environment/bin/python" -c 'import numpy; print(numpy.__version__)')"
  rm -rf "$scratch/environment"
done
[ $# -eq 0 ] || exit 0

make_root() { # NAME PACKAGES
  local name=$1 mirror=http://deb.debian.org/debian components=main
  case $name in
    bionic | jammy | noble) mirror=http://archive.ubuntu.com/ubuntu components="main universe" ;;
  esac
  echo "check-wheel: a bare root of $name"
  # A mirror of an unstable release may be older than its date of expiry allows.
  mmdebstrap --quiet --aptopt='Acquire::Check-Valid-Until "false"' --variant=minbase --mode=root --include="$2" "$name" "$scratch/$name" "deb [trusted=yes] $mirror $name $components"
  mountpoint -q "$scratch/$name/proc" || mount -t proc proc "$scratch/$name/proc"
}

remove_root() { # NAME
  umount "$scratch/$1/proc" 2> /dev/null || true
  rm -rf --one-file-system "${scratch:?}/$1"
}

# install RELEASE PYTHON REQUIREMENT...: into /site of the root, as pip of that Python does.
install() {
  local release=$1 version=$2
  shift 2
  python3 -m pip install -q --disable-pip-version-check --root-user-action=ignore --target "$scratch/$release/site" --only-binary=:all: --python-version "$version" --implementation cp \
    --platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64 --platform manylinux2014_x86_64 "$@"
}

make_root bionic ca-certificates
unzip -q "$wheel" -d "$scratch/bionic/site"
cat > "$scratch/kernel.kir" <<'KERNEL'
kernel k(x) { for i in grid_range(len(x)) { x[i] = erf(x[i]) + exp(x[i]) } }
KERNEL
cp "$scratch/kernel.kir" "$scratch/bionic/"
chroot "$scratch/bionic" sh -eu <<'TRY'
for way in no yes; do
  /site/kjit/bin/kjit-run -q --no-cache --compile-in-child=$way kernel.kir --arg x=zeros:f32[3] --launch 'k(x)' --print x | grep -q '1 1 1'
done
/site/kjit/bin/kjit-compile kernel.kir -a sm_90 -s 'f32[:] C' -e ptx | grep -q '.visible .entry k'
/site/kjit/bin/kjit-cache list > /dev/null
# Algorithms whose kernels ship run without the compiler.
if [ -f /site/kjit/kjit-*/kernels.kjit ]; then
  /site/kjit/bin/kjit-cache list --shipped > /shipped
  for kind in 'sm_75 *ptx' 'sm_90 *ptx' 'x86-64-v2 *object' 'x86-64-v3 *object' 'x86-64-v4 *object'; do
    grep -q "$kind" /shipped || { echo "check-wheel: no kernels for $kind"; exit 1; }
  done
  mkdir /away && mv /site/kjit/libkjit-compiler* /away/
  /site/kjit/bin/kjit-run -q --device cpu --checks none --arg x=arange:f32[1000] --call 's = reduce(x, add)' --call 'o = sort(x)' --print s | grep -q '499500'
  mv /away/* /site/kjit/
  echo "check-wheel: its compiled kernels run without the compiler; $(tail -n 1 /shipped); machine code for $(grep -c ' cubin ' /shipped || true) of them"
fi
echo "check-wheel: its programs run with $(ldd --version | head -1)"
TRY
remove_root bionic

try_python() { # RELEASE PYTHON NUMPY PACKAGES
  local release=$1 version=$2 numpy=$3
  make_root "$release" "$4"
  install "$release" "$version" "$wheel" "numpy==$numpy"
  mkdir -p "$scratch/$release/test"
  cp -r test/python test/*.py "$scratch/$release/test/"
  VERSION=$version NUMPY=$numpy TESTS=$tests chroot "$scratch/$release" sh -eu <<'TRY'
cd /test/python
export PYTHONPATH=/site KJIT_DEVICE=cpu
for test in $TESTS; do
  python$VERSION $test.py > /log 2>&1 || { cat /log; echo "check-wheel: $test.py failed with Python $VERSION and NumPy $NUMPY"; exit 1; }
done
python$VERSION /site/bin/kjit-run --version > /dev/null
echo "check-wheel: the tests passed with Python $VERSION, NumPy $NUMPY, $(ldd --version | head -1)"
TRY
}

try_cuda() { # RELEASE PYTHON, whose root has the wheel
  sed 's/exp(x/erfinv(x/' "$scratch/kernel.kir" > "$scratch/$1/kernel.kir" # libclc has no erfinv
  VERSION=$2 chroot "$scratch/$1" sh -eu <<'TRY'
compile() { PYTHONPATH=/site python$VERSION /site/bin/kjit-compile kernel.kir -a sm_90 -s 'f32[:] C' -e $1 -o out.$1 2> /log; }
if compile ptx || compile cubin; then echo "check-wheel: the root has a CUDA toolkit"; exit 1; fi
TRY
  install "$1" "$2" --upgrade "$wheel[cuda]"
  VERSION=$2 chroot "$scratch/$1" sh -eu <<'TRY'
compile() { PYTHONPATH=/site python$VERSION /site/bin/kjit-compile kernel.kir -a sm_90 -s 'f32[:] C' -e $1 -o out.$1; }
compile ptx && compile cubin
head -c 4 out.cubin | grep -q ELF
echo "check-wheel: kjit[cuda] has libdevice and ptxas"
TRY
}

try_python jammy 3.10 1.26.4 python3.10
remove_root jammy
try_python noble 3.12 2.1.3 python3.12,libstdc++6
try_cuda noble 3.12
remove_root noble
try_python trixie 3.13 2.3.5 python3.13
remove_root trixie
try_python sid 3.14 2.4.1 python3.14
