# bash examples_built.sh EXAMPLES FOLDER: each program of the examples is in the folder where it was built, but for those of MPI and of CUDA.
set -eu
for source in $(grep -rl 'int main(' "$1" --include=*.c --include=*.cpp); do
  name=$(basename "$source")
  grep -qE 'include <(mpi|cuda|optix).h>' "$source" || test -x "$2/${name%.*}" || { echo "${name%.*} is not built"; exit 1; }
done
