# full_disk.sh FOLDER KJIT_RUN KJIT_CACHE, in a mount namespace: the disk cache on a file system that is full, and on one that is
# read-only. Results are right with both, no unfinished file stays, and kjit-cache says what it cannot remove.
set -eu
folder=$1 kjit_run=$2 kjit_cache=$3

run() {
  "$kjit_run" --device cpu --cache "$folder" --arg 'x=arange:i32[1000]' --call 'o = sort(x)' --call 's = reduce(x, add)' --call 'h = argsort(x)' --check s=499500 "$@"
}

mount -t tmpfs -o size=16k,mode=755 none "$folder"
for round in 1 2; do run; done
echo "unfinished: $(ls -A "$folder" | grep -vc '\.kjit$\|^usage$')" || true
umount "$folder"

mount -t tmpfs -o size=4m,mode=755 none "$folder"
run
mount -o remount,ro "$folder"
run
entries=$(ls "$folder" | wc -l)
for command in clear 'trim 1'; do
  status=0
  "$kjit_cache" --cache "$folder" $command 2>&1 || status=$?
  echo "$command: status $status, $(($(ls "$folder" | wc -l) - entries)) fewer"
done
"$kjit_cache" --cache "$folder" verify
