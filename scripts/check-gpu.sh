#!/usr/bin/env bash
# Runs the examples, the conformance rows, algorithms, and the hosts that allocate, copy and capture on a GPU under compute-sanitizer: memcheck, racecheck, synccheck. Needs the CUDA toolkit's
# compute-sanitizer and NumPy.
#   scripts/check-gpu.sh [BIN_DIR [PART|TOOL]...]     default: build/release/bin; of a bundle: bin. PART: examples, algorithms, hosts; TOOL: memcheck, racecheck,
# synccheck (hosts run under memcheck); default: all. Ends with "N passed, N failed, N skipped"; logs of what failed are shown.
set -u
cd "$(dirname "$0")/.." || exit 2
bin=$(cd "${1:-build/release/bin}" && pwd) || exit 2
shift $(($# > 0))
parts="" tools=""
for word in "$@"; do
  case $word in
    examples | algorithms | hosts) parts="$parts $word" ;;
    memcheck | racecheck | synccheck) tools="$tools $word" ;;
    *) echo "check-gpu: neither a part nor a tool: $word" >&2; exit 2 ;;
  esac
done
sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
[ -x "$sanitizer" ] || { echo "check-gpu: compute-sanitizer not found" >&2; exit 2; }
log=$(mktemp) reports=$(mktemp -d)
trap 'rm -rf "$log" "$reports"' EXIT
passed=0 failed=0

hosts=$bin/../test/run # of a build
[ -d "$hosts" ] || hosts=$bin/../built/test/run # of a bundle

sanitize() { echo "$sanitizer --tool $1 --error-exitcode 77 --log-file $reports/%p"; }

# count TOOL NAME COMMAND...: Every process leaves a report, which must end in a summary of no errors.
count() {
  local tool=$1 name=$2
  shift 2
  rm -f "$reports"/*
  if "$@" > "$log" 2>&1 &&
    [ -n "$(ls "$reports")" ] && [ -z "$(grep -L -E 'SUMMARY: 0 (errors|hazards)' "$reports"/*)" ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: $tool $name"
    cat "$log" "$reports"/* | tail -n 30
  fi
}

# check TOOL NAME COMMAND...: COMMAND takes the sanitized tool through --kjit-run.
check() { count "$@" --device cuda --kjit-run "$(sanitize "$1") $bin/kjit-run"; }

check_examples() {
  for tool in ${tools:-memcheck racecheck synccheck}; do
    echo "check-gpu: $tool"
    for example in examples/*/run.py; do
      case $example in
        examples/formulas/*) ;; # runs on the CPU only
        examples/taxi/*) ;; # a shell script, which calls kjit-run itself
        examples/arrow/*) ;; # a library for other programs: what uses it is among the hosts below
        examples/diffusion/*) check "$tool" "$example" python3 "$example" --rows 203 --cols 157 --iterations 20 ;;
        *) check "$tool" "$example" python3 "$example" ;;
      esac
    done
    for rows in test/conformance/{barriers,shared,warp,arrays,atomics,flow,vectors,structs,complex,shared_extents,groups,copies,fragments,recursion,{block,warp}_{pieces,sorts}}.kir; do
      check "$tool" "$rows" python3 test/conformance/check.py "$rows"
    done
  done
}

check_algorithms() {
  # Algorithms on few elements: each family's cases, of every kind, in one process of the tool for each case.
  echo "check-gpu: algorithms"
  for family in test/algorithm/*.test; do
    command=$(sed -n 's|^# RUN: %if cuda %{ %python %S/check.py|python3 test/algorithm/check.py|p' "$family" | head -n 1 | sed 's|%S|test/algorithm|g; s| --kjit-run.*||')
    [ -n "$command" ] || continue
    for tool in ${tools:-memcheck racecheck synccheck}; do
      # shellcheck disable=SC2086
      count "$tool" "$family" $command --small --device cuda --kjit-run "$(sanitize "$tool") $bin/kjit-run"
    done
  done
  # This one loads the library itself, and asks the driver for what it may refuse.
  for tool in ${tools:-memcheck racecheck synccheck}; do
    # shellcheck disable=SC2046
    count "$tool" test/algorithm/reduce.py $(sanitize "$tool") $([ "$tool" != memcheck ] || echo --report-api-errors no) \
      python3 test/algorithm/reduce.py --libdir "$bin/../lib" --device cuda --count 48
  done
}

check_hosts() {
  # Hosts try what the driver refuses, too: what counts are accesses of memory. Not stress: under the tool a capture of one thread was seen to be broken while others load code, which does
  # not happen without it.
  echo "check-gpu: hosts"
  for host in memory graphs concurrent; do
    # shellcheck disable=SC2046
    count memcheck "$host" $(sanitize memcheck) --report-api-errors no "$hosts/$host" cuda
  done
  programs=$(cd "$hosts/../../examples" && pwd)
  # shellcheck disable=SC2046
  count memcheck columns $(sanitize memcheck) --report-api-errors no "$programs/columns_check" cuda examples/arrow 300
}

for part in ${parts:-examples algorithms hosts}; do
  "check_$part"
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
