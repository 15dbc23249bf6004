#!/usr/bin/env bash
# Boots the smallest server repeatedly, for a command that does nothing: boots.sh GDR [TIMES]
# (100 unless given). Prints what failed, how often a QEMU died (gdr starts those guests once more),
# and how long it took. Not part of the tests: it takes a quarter of an hour. Exit code 1 if a boot
# failed.
set -euo pipefail
gdr=$(realpath "$1") times=${2:-100}
source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

failed=0 died=0 again=0
for ((boot = 1; boot <= times; ++boot)); do
  start=$EPOCHREALTIME code=0
  "$gdr" emulate "$source/topologies/servers/sandybridge-one-socket.json" --timeout 280s -- sh -c 'ibv_devices | grep -c rxe0' >said 2>&1 || code=$?
  awk -v from="$start" -v to="$EPOCHREALTIME" 'BEGIN { printf "%.1f\n", to - from }' >>seconds
  died=$((died + $(grep -c 'QEMU ended\|QEMU was killed' said || true)))
  again=$((again + $(grep -c 'starting the guests once more' said || true)))
  if [ $code -ne 0 ] || ! grep -q '^h0| 1$' said; then
    failed=$((failed + 1))
    echo "boot $boot: exit code $code: $(tail -n 20 said)"
  elif grep -q '^gdr:.*QEMU' said; then
    echo "boot $boot: $(grep '^gdr:' said)"
  fi
done
# Linux adds up what children took, in ticks.
read -r -a stat <"/proc/$$/stat"
sort -n seconds | awk -v boots="$times" -v failed=$failed -v died=$died -v again=$again -v ticks=$((stat[15] + stat[16])) -v hertz="$(getconf CLK_TCK)" '
{ value[NR] = $1 } END {
  printf "%d boots: %d failed, %d QEMUs died, %d started once more; median %.1f s, longest %.1f s, %.1f s of CPU a boot\n",
         boots, failed, died, again, value[int((NR + 1) / 2)], value[NR], ticks / hertz / boots
}'
[ $failed -eq 0 ]
