#!/usr/bin/env bash
# Checks the commits that origin/main does not have, or the newest commit if there are none: a subject is `area: what changed` in at most 72 characters, and the prose
# of the change is plain (test/docs/check_prose.py).
#   scripts/check-commits.sh [BASE]    the commits after BASE
# Exit status 77: there are no commits to compare, as in a tarball or a clone of one commit.
set -eu
cd "$(dirname "$0")/.."
base=${1:-$(git merge-base HEAD origin/main 2> /dev/null || true)}
if [ -z "$base" ] || [ "$(git rev-parse "$base")" = "$(git rev-parse HEAD 2> /dev/null)" ]; then
  base=$(git rev-parse -q --verify HEAD~1) || exit 77
fi
wrong=0
while read -r subject; do
  if [ ${#subject} -gt 72 ]; then
    echo "the subject of a commit has ${#subject} characters, at most 72 are allowed: $subject"
    wrong=1
  elif ! [[ $subject =~ ^[a-zA-Z0-9_.+/,\ -]+:\ .+ || $subject == Merge\ * || $subject == Revert\ * ]]; then
    echo "the subject of a commit has no area, as in \`area: what changed\`: $subject"
    wrong=1
  fi
done < <(git log --no-merges --format=%s "$base..HEAD")
python3 test/docs/check_prose.py . --since "$base" || wrong=1
exit $wrong
