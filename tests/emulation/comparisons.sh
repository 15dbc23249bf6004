#!/usr/bin/env bash
# Repeats gdr emulate --compare --path staged over two DGX A100, in turn over perfect links and with
# loss, each time from another seed: comparisons.sh GDR [COUNT [SIZE]]   (10 and 16MiB unless given).
# Exit code 1 if one was not equal, or nothing was sent again under loss.
set -euo pipefail
gdr=$(realpath "$1") count=${2:-10} size=${3:-16MiB}
source=$(cd "$(dirname "$0")/../.." && pwd)
failed=0
for ((run = 1; run <= count; ++run)); do
  faults=()
  [ $((run % 2)) = 0 ] || faults=(--fault '*:loss=0.1%,only=roce' --seed "$run")
  code=0
  said=$("$gdr" emulate "$source/topologies/clusters/two-dgx-a100.json" --compare --path staged --size "$size" --timeout 30min \
    ${faults[@]+"${faults[@]}"} 2>&1) || code=$?
  again=$(sed -n 's/^  again, beside it: //p' <<<"$said")
  [ ${#faults[@]} = 0 ] || [ "${again#0B }" = "$again" ] || { code="$code, but nothing was sent again"; }
  echo "$run ${faults[*]}: exit code $code; again: $again"
  [ "$code" = 0 ] || { failed=$((failed + 1)); tail -n 40 <<<"$said"; }
done
echo "$count comparisons: $failed failed"
[ $failed -eq 0 ]
