#!/usr/bin/env bash
# What guests do, one case a run: emulation_test.sh GDR SOURCE CASE. Downloads the guests' kernel when it is in no cache. Cases are
# below and in cases/, a file each.
set -uo pipefail
gdr=$1 source=$2 case=$3
work=$(mktemp -d)
at_end=()
clean_up() {
  for command in "${at_end[@]}"; do $command >/dev/null 2>&1; done
  rm -rf "$work"
}
trap clean_up EXIT
cd "$work"
failures=0
skip() { echo "SKIP: $*"; exit 77; }
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }

small=$source/topologies/servers/sandybridge-one-socket.json
two=$source/topologies/clusters/two-sandybridge-two-sockets.json

# emulate EXPECTED_CODE ARGUMENT...: output in $work/out
emulate() {
  local expected=$1 code=0
  shift
  "$gdr" emulate --timeout 280s "$@" >"$work/out" 2>&1 || code=$?
  [ $code -eq "$expected" ] || fail "gdr emulate $*: exit code $code, expected $expected: $(tail -n 20 "$work/out")"
}

# part FILE SKIP: 64 KiB of a file
part() { dd if="$1" bs=64K skip="$2" count=1 status=none; }

# said TEXT: a line of the output has it.
said() { grep -qe "$1" "$work/out" || fail "no line $1 in: $(cat "$work/out")"; }

# kept EXPECTED_CODE up|in|down ARGUMENT...: output in $work/out
kept() {
  local expected=$1 code=0
  shift
  "$gdr" emulate "$@" >"$work/out" 2>&1 || code=$?
  [ $code -eq "$expected" ] || fail "gdr emulate $*: exit code $code, expected $expected: $(tail -n 20 "$work/out")"
}

# compile NAME: tests/emulation/NAME.c
compile() { ${CC:-gcc} -Wall -Wextra -Werror -o "$1" "$source/tests/emulation/$1.c" -libverbs || fail "$1.c does not compile"; }

# no_run_left: no guest and no file of ours. Kept guests of others may be there; the test names its own.
no_run_left() {
  sleep 1
  ! pgrep -P $$ -x qemu-system-x86 >/dev/null || fail "a QEMU is left"
  for folder in /dev/shm /tmp; do
    for path in "$folder/gdr-emulate-$(id -u)-"*; do
      [ ! -d "$path" ] || ! flock -n "$path" true || fail "$path is left"
    done
  done
}

nothing_left() {
  sleep 1
  ! pgrep -f "fw_cfg name=opt/gdr/guest,file=$1" >/dev/null || fail "a QEMU is left"
  [ ! -e "$1" ] || fail "$1 is left"
}

case $case in
  one_host)
    echo from-outside >outside
    emulate 7 "$small" -- sh -c 'ibv_devices; id -u; ls /dev/gdr-gpu0; echo from-inside >inside; cat outside; echo to-errors >&2; env; exit 7'
    for line in 'rxe0' '^h0| 0$' '^h0| /dev/gdr-gpu0$' '^h0| from-outside$' '^h0| to-errors$' '^h0| GDR_NIC_0=10.0.0.1$'; do
      grep -q "$line" "$work/out" || fail "no line $line in: $(cat "$work/out")"
    done
    [ "$(cat inside)" = from-inside ] || fail "what was written inside did not come out"
    ;;
  eight_gpus_eight_nics)
    emulate 0 "$source/topologies/clusters/two-dgx-a100.json" -- sh -c 'ibv_devices | grep -c rxe; ls /dev/gdr-gpu* | wc -l'
    for host in h0 h1; do
      [ "$(grep "^$host| " "$work/out" | tr '\n' ' ')" = "$host| 10 $host| 8 " ] || fail "$host: $(cat "$work/out")"
    done
    ;;
  gpu_to_gpu | gpu_to_gpu_with_loss)
    mkdir gpus
    faults=()
    [ $case = gpu_to_gpu ] || faults=(--fault '*:loss=1%,reorder=1%,only=roce' --seed 3 --counters counters)
    # The server fills its memory before it listens, the client before it connects.
    cat >command <<'END'
write="ib_write_bw -d rxe0 -x 1 -m 4096 -s 65536 -n 20 --mmap=/dev/gdr-gpu0"
[ "$GDR_HOST" = h0 ] && exec $write
for try in 1 2 3 4 5 6 7 8 9 10; do
  sleep 3
  $write "$GDR_PEER_h0_NIC_0" && exit 0
done
exit 1
END
    emulate 0 "$two" --gpu-files gpus ${faults[@]+"${faults[@]}"} -- sh command
    cmp -s <(part gpus/h1-gpu0.memory 0) <(head -c 65536 /dev/zero) && fail "the client's GPU memory is empty"
    cmp -s <(part gpus/h1-gpu0.memory 0) <(part gpus/h1-gpu0.memory 1) && fail "both halves of the client's GPU memory are the same"
    cmp <(part gpus/h1-gpu0.memory 0) <(part gpus/h0-gpu0.memory 1) || fail "the client's bytes are not in the server's GPU memory"
    if [ $case = gpu_to_gpu_with_loss ]; then
      grep -q '"loss": [1-9]' counters || fail "nothing was lost: $(cat counters)"
      grep -q '"reordered": [1-9]' counters || fail "nothing was reordered: $(cat counters)"
      # 20 writes of 64 KiB, each byte counted once.
      grep -q '"kind": "requests".*"payload": 1310720,' counters || tr -d '\n ' <counters | grep -q '"requests","packets":[0-9]*,"payload":1310720,' ||
        fail "the client's payload is not 20 x 64 KiB: $(cat counters)"
      said 'h1/nic0.tx'
    fi
    ;;
  gpu_ioctl)
    mkdir gpus
    ${CC:-gcc} -Wall -Wextra -Werror "-I$source/emu/module" -o gpu_ioctl "$source/tests/emulation/gpu_ioctl.c" || fail "gpu_ioctl.c does not compile"
    emulate 0 "$small" --gpu-files gpus -- ./gpu_ioctl
    grep -q '^h0| all of it holds$' "$work/out" || fail "said: $(cat "$work/out")"
    [ "$(tail -c 4096 gpus/h0-gpu0.memory | head -c 9)" = "last page" ] || fail "the last page is not seen from outside"
    ;;
  panic)
    emulate 125 "$small" -- sh -c 'echo c >/proc/sysrq-trigger; sleep 100'
    grep -q 'Kernel panic' "$work/out" || fail "no reason given: $(cat "$work/out")"
    ;;
  timeout)
    "$gdr" emulate "$small" --timeout 60s -- sh -c 'echo up; sleep 1000' >"$work/out" 2>&1
    code=$?
    [ $code -eq 124 ] || fail "exit code $code, expected 124"
    grep -q '^gdr: h0: not finished after 60s (--timeout): stopped$' "$work/out" || fail "said: $(cat "$work/out")"
    ;;
  interrupt)
    "$gdr" emulate "$small" -- true >"$work/out" 2>&1 &
    gdr_process=$!
    for try in $(seq 100); do
      qemu=$(pgrep -P $gdr_process -x qemu-system-x86) && break
      sleep 0.2
    done
    folder=$(tr '\0' '\n' <"/proc/$qemu/cmdline" | sed -n 's/^name=opt\/gdr\/guest,file=\(.*\)\/h0.settings$/\1/p')
    [ -d "$folder" ] || fail "no folder of the run: '$folder'"
    kill -TERM $gdr_process
    wait $gdr_process
    code=$?
    [ $code -eq 143 ] || fail "exit code $code, expected 143"
    nothing_left "$folder"
    ;;
  *)
    if [ -f "$source/tests/emulation/cases/$case.sh" ]; then . "$source/tests/emulation/cases/$case.sh"; else fail "no case $case"; fi
    ;;
esac
[ $failures -eq 0 ]
