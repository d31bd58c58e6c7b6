#!/usr/bin/env bash
# The run-tests.sh of a bundle (bundle.sh puts it at its top): runs the tests on this machine, the GPU's too. Ends with "N passed, N failed, N skipped".
# Arguments go to lit: --filter conformance, --param fuzz_seconds=5 ... KJIT_BUNDLE_WORK: a folder for what the tests write, kept; default a temporary one.
set -eu
here=$(dirname "$(readlink -f "$0")")
if [ -n "${KJIT_BUNDLE_WORK:-}" ]; then
  work=$KJIT_BUNDLE_WORK
  mkdir -p "$work"
else
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
fi
cat > "$work/lit.site.cfg.py" <<SITE
config.kjit_bin_dir = r"$here/bin"
config.kjit_lib_dir = r"$here/lib"
config.kjit_test_dir = r"$here/built/test"
config.kjit_example_dir = r"$here/built/examples"
config.kjit_build_dir = ""
config.kjit_source_dir = r"$here/programs"
config.kjit_filecheck = r"$here/checks/FileCheck"
config.kjit_python = r"$(command -v python3)"
config.kjit_cc = "cc"
config.kjit_cxx = "c++"
config.kjit_cmake = "cmake"
config.kjit_sanitize = ""
config.kjit_hostile = False
config.test_exec_root = r"$work"
lit_config.load_config(config, r"$here/programs/test/lit.cfg.py")
SITE
timeout=()
if python3 -c 'import psutil' 2> /dev/null; then timeout=(--timeout 300); fi
status=0
PYTHONPATH=$here/checks/lit PYTHONDONTWRITEBYTECODE=1 python3 -c 'from lit.main import main; main()' -v "${timeout[@]}" --output "$work/results.json" "$@" "$work" || status=$?
read -r passed failed skipped <<< "$(python3 "$here/checks/count-results.py" "$work/results.json")"
echo "$passed passed, $failed failed, $skipped skipped"
exit "$status"
