#!/bin/bash
# Ctrl-C in whatever simulates: the shell sees 130, nothing is said, and it ends at once.
# usage: interrupt_test.sh GDR PROJECT
set -u
gdr=$1
cd "$2" || exit 1
cluster=topologies/clusters/two-dgx-h100.json
failed=0
interrupted=0

try() {
  local seconds=$1 said status
  shift
  # --kill-after: what takes longer than that to end is killed, which shows as 137.
  said=$(timeout --preserve-status --signal=INT --kill-after=5 "$seconds" "$gdr" "$@" 2>&1 >/dev/null)
  status=$?
  if [ "$status" -eq 130 ]; then interrupted=$((interrupted + 1)); fi
  # On a fast machine a command may be done before the signal comes.
  if [ "$status" -ne 130 ] && [ "$status" -ne 0 ] || [ -n "$said" ]; then
    echo "gdr $* after $seconds s: status $status, \"$said\"; expected 130 and nothing"
    failed=1
  fi
}

for seconds in 0.05 0.3 1; do
  try $seconds validate
  try $seconds predict $cluster --from h0/gpu0 --to h1/gpu0 --range
  try $seconds compare topologies/servers/dgx-h100.json topologies/servers/dgx-a100.json
  try $seconds predict topologies/clusters/two-dgx-a100.json --flows examples/eight-pairs.json
done
if [ $interrupted -eq 0 ]; then
  echo "no command was still running when the signal came: the test shows nothing"
  failed=1
fi
exit $failed
