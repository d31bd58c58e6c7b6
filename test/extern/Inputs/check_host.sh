# bash check_host.sh NVCC COMMAND...: runs a command of a C compiler with the headers of the toolkit that nvcc belongs to.
nvcc=$(command -v "$1") && shift && exec "$@" -isystem "$(dirname "$nvcc")/../include"
