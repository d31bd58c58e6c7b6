#!/usr/bin/env bash
# Installs what building and testing kjit needs and this machine lacks, with Debian 12's packages. Needs root or sudo only when something is missing.
# Other systems with dpkg work if their apt sources have LLVM 22. Without dpkg the script names what is needed and fails.
set -eu

case $(uname -m) in
  x86_64 | aarch64) ;;
  *)
    echo "set-up: kjit runs on x86-64 and aarch64 only; this machine is $(uname -m)" >&2
    exit 1
    ;;
esac

packages=(
  gcc g++ libc6-dev cmake ninja-build
  llvm-22-dev zlib1g-dev libzstd-dev libxxhash-dev libffi-dev libpng-dev libminizip-dev # LLVM's archives need zlib and zstd
  libclc-22                                        # math functions for GPUs, which become part of the compiler library
  doxygen                                          # reads the headers for their manual pages
  llvm-22-tools libcmocka-dev python3 python3-dev python3-venv python3-numpy python3-psutil make pkgconf binutils dpkg-dev file # the tests: lit and FileCheck, unit tests, the package for Python and an environment to install it in, input data, the outside project; Debian packages
)
# The reference of the accuracy test; the debugger that looks at kernels; the MPI of two examples, Dask's workers, the tables of pandas, and what the simulator of kernels waits with; the second compiler, the formatter, the linter and the spelling checker of the test command.
checks=(libmpfr-dev gdb libopenmpi-dev openmpi-bin python3-mpi4py python3-distributed python3-pandas python3-greenlet clang libomp-dev clang-format clang-tidy codespell)
[ "${1:-}" = --checks ] && packages+=("${checks[@]}")

# What Debian has no package of, or another release in each: what an example is compared with, and what looks for mistakes in Python. In build/python, where
# test/lit.cfg.py and scripts/test look for it. Without a network these checks are skipped.
python_packages=(pyarrow==21.0.0 numba==0.61.2 ruff==0.8.4 mypy==1.13.0)
install_python_packages() {
  local folder
  folder=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/build/python
  "$folder/bin/python3" -c "import importlib.metadata as m, sys; assert all(m.version(n) == v for n, v in (p.split('==') for p in sys.argv[1:]))" \
    "${python_packages[@]}" 2> /dev/null && return
  echo "set-up: ${python_packages[*]} in $folder"
  /usr/bin/python3 -m venv --clear --system-site-packages "$folder" &&
    "$folder/bin/pip" install -q --disable-pip-version-check --timeout 20 --retries 2 --only-binary :all: "${python_packages[@]}" &&
    "$folder/bin/python3" -c "import pyarrow" ||
    echo "set-up: ${python_packages[*]} cannot be installed here: what needs them is skipped" >&2
}

if ! command -v dpkg-query > /dev/null; then
  echo "set-up: this system has no dpkg, so nothing is installed. Install the contents of these packages of Debian, then run cmake: ${packages[*]}" >&2
  exit 1
fi

is_installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2> /dev/null)" = installed ]; }

missing=()
for package in "${packages[@]}"; do
  is_installed "$package" || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "set-up: no package is missing"
  [ "${1:-}" = --checks ] && install_python_packages
  exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo > /dev/null || { echo "set-up: run as root or install sudo; missing: ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3)

log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "set-up: missing: ${missing[*]}"
# A line now and then, so that a slow mirror does not look like a hang.
run() {
  local start=$SECONDS
  "$@" > "$log" 2>&1 < /dev/null &
  local pid=$!
  while kill -0 "$pid" 2> /dev/null; do
    sleep 1
    [ $(((SECONDS - start) % 10)) -eq 9 ] && echo "set-up: ... $((SECONDS - start)) s: $(tail -n 1 "$log" | cut -c 1-100)"
  done
  wait "$pid" || { cat "$log" >&2; return 1; }
}
run "${apt[@]}" update
# Only LLVM 22 and its libclc are too new for some releases.
unknown=()
for package in "${missing[@]}"; do
  apt-cache show "$package" > /dev/null 2>&1 || unknown+=("$package")
done
if [ ${#unknown[@]} -gt 0 ]; then
  echo "set-up: the apt sources of this system, $(. /etc/os-release && echo "$PRETTY_NAME"), have no package ${unknown[*]}. Nothing was installed." >&2
  echo "set-up: in Debian 12, llvm-22 is in the security repository: add 'bookworm-security main'." \
    "For other releases, LLVM's repository https://apt.llvm.org has LLVM 22, or build in a container of Debian 12: its packages and wheel run here, too." >&2
  exit 1
fi
run "${apt[@]}" install -y --no-install-recommends "${missing[@]}"
[ "${1:-}" = --checks ] && install_python_packages
echo "set-up: done"
