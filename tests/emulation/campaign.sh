#!/usr/bin/env bash
# Runs of the transport's campaign of faults in two guests, each from a seed: campaign.sh GDR TESTS [FIRST [COUNT]]   (1 and 50 unless
# given; TESTS is gdr_guest_tests). Links lose, reorder, corrupt and go down as the seed says, the peer is killed, registration is
# refused, memory is freed under way; every run must end with right bytes or a named error in time, and leave nothing behind. One boot for
# all of them, or the guests that $GDR_GUESTS names (CTest). Exit code 1 when a run did not; its seed repeats its schedule.
set -euo pipefail
trap 'exit 143' TERM
trap 'exit 130' INT
gdr=$(realpath "$1") tests=$(realpath "$2") first=${3:-1} count=${4:-50}
source=$(cd "$(dirname "$0")/../.." && pwd)
name=${GDR_GUESTS:-campaign-$$}
if [ -z "${GDR_GUESTS:-}" ]; then
  trap '"$gdr" emulate down $name >/dev/null 2>&1' EXIT
  "$gdr" emulate up $name "$source/tests/emulation/two-hosts-two-nics.json" --timeout 600s
fi

failed=0 errors=0
for ((seed = first; seed < first + count; ++seed)); do
  code=0
  said=$("$gdr" emulate in $name --fault "$("$tests" faults $seed)" --seed $seed --timeout 200s -- "$tests" campaign $seed 2>&1) || code=$?
  # Test processes that still run were left by the run.
  left=$("$gdr" emulate in $name -- sh -c 'pgrep gdr_guest_tests || true' 2>&1) || left="the guests are gone: $left"
  grep -E '^h[0-9]+\| (seed|gdr_guest_tests)' <<<"$said" | cut -c5- || true
  ! grep -q 'named error' <<<"$said" || errors=$((errors + 1))
  if [ $code -ne 0 ] || [ -n "$left" ] || ! grep -q "^h0| seed $seed: " <<<"$said"; then
    failed=$((failed + 1))
    echo "seed $seed FAILED with exit code $code; processes left: ${left:-none}; all it said:"
    echo "$said" | tail -n 40
  fi
done
echo "$count runs from seed $first: $failed failed, $errors ended with a named error, $((count - failed - errors)) with right bytes"
[ $failed -eq 0 ]
