#!/usr/bin/env bash
# Runs the diffusion program, 2000 x 2000 cells and 10,000 iterations, on the GPU when there is one and else on the CPU (then fewer iterations if they would take long),
# checks the result against the exact solution, and writes it as a picture.
#   examples/run-demo.sh [folder of kjit-run]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
if [ $# -ge 1 ]; then
  export KJIT_RUN=$1/kjit-run
fi
: "${KJIT_RUN:=kjit-run}"
export KJIT_RUN

python=
for candidate in python3 /usr/bin/python3; do
  if command -v "$candidate" > /dev/null && "$candidate" -c "import numpy" 2> /dev/null; then
    python=$candidate
    break
  fi
done
[ -n "$python" ] || { echo "run-demo: needs python3 with NumPy (package python3-numpy)" >&2; exit 1; }

image=${KJIT_DEMO_IMAGE:-diffusion.ppm}
echo "demo: devices"
"$KJIT_RUN" --devices
echo "demo: the program"
exec "$python" "$here/diffusion/run.py" --verbose --time --image "$image"
