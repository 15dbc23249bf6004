#!/usr/bin/env bash
# Tests of what guests do: emulation_test.sh GDR SOURCE CASE. Downloads the guests' kernel unless it is cached. Cases
# are below and in cases/, one file each.
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
# How many times longer guests take here than usual (kernel.sh).
slowness=$(cat "${GDR_GUEST_SLOWNESS:-/dev/null}" 2>/dev/null || true)
longest=$((280 * ${slowness:-1}))s
skip() { echo "SKIP: $*"; exit 77; }
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }

small=$source/topologies/servers/sandybridge-one-socket.json
# cluster NAME HOST...: NAME.json, a cluster of the smallest server
cluster() {
  local name=$1 hosts=()
  shift
  for host; do hosts+=("{\"name\": \"$host\", \"server\": \"$small\"}"); done
  (IFS=,; echo "{\"format\": 1, \"name\": \"$name\", \"hosts\": [${hosts[*]}], \"fabric\": {\"model\": \"infiniband-fdr-edr\", \"switches\": 1}}") >"$name.json"
}
two=$work/two.json
cluster two h0 h1

# emulate EXPECTED_CODE ARGUMENT...: output in $work/out
emulate() {
  local expected=$1 code=0
  shift
  "$gdr" emulate --timeout $longest "$@" >"$work/out" 2>&1 || code=$?
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
compile() {
  ${CC:-gcc} -Wall -Wextra -Werror "-I$source/emu/module" -o "$1" "$source/tests/emulation/$1.c" -libverbs || fail "$1.c does not compile"
}

# abandoned: folders of runs that no run holds.
abandoned() {
  for folder in /dev/shm /tmp; do
    for path in "$folder/gdr-emulate-$(id -u)-"*; do
      [ ! -d "$path" ] || ! flock -n "$path" true || echo "$path"
    done
  done | sort
}

# no_run_left: no guest and no file of ours. Other runs may be there; one that begins holds its folder a moment later.
no_run_left() {
  local left
  left=$(abandoned)
  sleep 1
  ! pgrep -P $$ -x qemu-system-x86 >/dev/null || fail "a QEMU is left"
  left=$(comm -12 <(echo "$left") <(abandoned))
  [ -z "$left" ] || fail "$left is left"
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
    [ $case = gpu_to_gpu ] || faults=(--fault '*:loss=1%,reorder=1%,only=roce' --seed 3)
    compile count_gpu
    # The server fills its memory before it listens, the client before it connects.
    cat >command <<'END'
write="ib_write_bw -d rxe0 -x 1 -m 4096 -s 65536 -n 20 --mmap=/dev/gdr-gpu0"
if [ "$GDR_HOST" = h0 ]; then
  $write || exit 1
else
  until $write "$GDR_PEER_h0_NIC_0"; do sleep 1; done
fi
./count_gpu
END
    emulate 0 "$two" --gpu-files gpus --counters counters ${faults[@]+"${faults[@]}"} -- sh command
    cmp -s <(part gpus/h1-gpu0.memory 0) <(head -c 65536 /dev/zero) && fail "the client's GPU memory is empty"
    cmp -s <(part gpus/h1-gpu0.memory 0) <(part gpus/h1-gpu0.memory 1) && fail "both halves of the client's GPU memory are the same"
    cmp <(part gpus/h1-gpu0.memory 0) <(part gpus/h0-gpu0.memory 1) || fail "the client's bytes are not in the server's GPU memory"
    if [ $case = gpu_to_gpu_with_loss ]; then
      grep -q '"loss": [1-9]' counters || fail "nothing was lost: $(cat counters)"
      grep -q '"reordered": [1-9]' counters || fail "nothing was reordered: $(cat counters)"
      said 'h1/nic0.tx'
      grep -q '"repeated_payload": [1-9]' counters || fail "nothing was sent again: $(cat counters)"
    fi
    # 20 writes of 64 KiB: the switch and both NICs count each byte once.
    IFS=: read -r payload repeated < <(tr -d '\n ' <counters |
      sed -En 's/.*"requests","packets":[0-9]*,"payload":([0-9]*),"announced":[0-9]*,"repeated_packets":[0-9]*,"repeated_payload":([0-9]*)}.*/\1:\2/p') || true
    [ "${payload:-}" = 1310720 ] || fail "the client's payload is not 20 x 64 KiB: $(cat counters)"
    # The NIC's reads by its own count: each byte of a message once, then those of packets built
    # again, which it may have dropped before the switch saw them.
    said '^h0| nic_read 0 again 0 nic_written 1310720$'
    said '^h1| nic_read 1310720 again [0-9]* nic_written 0$'
    again=$(sed -n 's/^h1| nic_read .* again \([0-9]*\) .*/\1/p' "$work/out")
    [ "${again:-0}" -ge "${repeated:-0}" ] || fail "$repeated bytes were sent again, but only $again read again"
    ;;
  compare_extra_copy)
    # Outgoing bytes first go through host memory and back: a copy in each direction that no path
    # has.
    emulate 1 "$two" --compare --path gdr --path staged --size 64KiB --transfer --extra-copy
    for line in 'gdr: copy-engine h0/gpu0 > h0/memory' 'gdr: copy-engine h0/memory > h0/gpu0' 'gdr: all h0/memory' \
      'staged: copy-engine h0/gpu0 > h0/numa0' 'staged: copy-engine h0/memory > h0/gpu0'; do
      said "^  $line\$"
    done
    said '^  copy-engine h0/gpu0 > h0/numa0  *65536  *131072  *NO  memory, module$'
    # The peer and the network were not involved.
    ! grep -q '^  [a-z]*: .*h1/' "$work/out" || fail "more than the copy is unequal: $(cat "$work/out")"
    ;;
  compare_under_loss)
    # What NICs read again for lost packets is not part of the stages, in whichever memory; an extra
    # copy still is.
    for path in gdr staged; do
      for operation in write read; do
        emulate 0 "$two" --compare --path $path --operation $operation --size 4MiB --fault '*:loss=1%,only=roce' --seed 5
        said '^All bytes are equal.$'
        again=$(sed -n 's/^  again, beside it: \(.*\) sent, \(.*\) read by NICs$/\1 \2/p' "$work/out")
        case $again in *B*) ;; *) fail "no line of what was sent and read again: $(cat "$work/out")" ;; esac
        case " $again" in *' 0B'*) fail "$path, $operation: nothing was sent or read again: $again" ;; esac
      done
    done
    emulate 1 "$two" --compare --path staged --size 1MiB --transfer --extra-copy --fault '*:loss=1%,only=roce' --seed 5
    said '^  staged: copy-engine h0/gpu0 > h0/numa0$'
    ! grep -q '^  staged: nic-' "$work/out" || fail "more than the copy is unequal: $(cat "$work/out")"
    ;;
  compare_own_programs)
    # perftest in place of gdr transfer: as planned; out of host memory; one copy too many; a program that fails.
    perf() { echo "$1 -d rxe0 -x 1 -s 4096 -n 5 -F $2"; }
    there='--mmap=/dev/gdr-gpu0 $GDR_PEER_h1_NIC_0'
    compare() { emulate "$1" "$two" --compare --path gdr --size 20KiB --operation "$2" --on h0 "sleep 4; $3" --on h1 "$4"; }
    compare 0 write "gdr --version; $(perf ib_write_bw "$there")" "$(perf ib_write_bw --mmap=/dev/gdr-gpu0)"
    said '^All bytes are equal.$'
    said '^  nic-write h1/nic0 > h1/gpu0 *20480 *20480 *yes  module, fabric$'
    compare 0 send "$(perf ib_send_bw "$there")" "$(perf ib_send_bw --mmap=/dev/gdr-gpu0)"
    said '^All bytes are equal.$'
    compare 1 write "$(perf ib_write_bw '$GDR_PEER_h1_NIC_0'); dd if=/dev/gdr-gpu0 of=/dev/null bs=4096 count=1" \
      "$(perf ib_write_bw --mmap=/dev/gdr-gpu0)"
    for line in 'nic-read h0/gpu0 > h0/nic0' 'copy-engine h0/gpu0 > h0/memory' 'nic-read h0/memory > h0/nic0' 'all h0/memory'; do
      said "^  gdr: $line\$"
    done
    ! grep -q '^  gdr: .*h1/' "$work/out" || fail "the receiver did nothing wrong: $(cat "$work/out")"
    compare 1 write 'exit 3' true
    said 'a program failed (exit code 3)'
    ;;
  compare_*)
    emulate 0 "$source/topologies/clusters/${case#compare_}.json" --compare --size 1MiB
    for path in tcp staged gdr; do said "^$path, by h0/nic"; done
    said '^All bytes are equal.$'
    ! grep -q 'not possible' "$work/out" || fail "a path is left out: $(cat "$work/out")"
    ;;
  panic_and_timeout)
    SECONDS=0
    emulate 125 "$small" -- sh -c 'echo c >/proc/sysrq-trigger; sleep 100'
    said 'Kernel panic'
    # Long enough for the guest to be up.
    limit=$((3 * SECONDS + 5))s
    kept 124 "$small" --timeout $limit -- sh -c 'echo up; sleep 1000'
    said '^h0| up$'
    said "^gdr: h0: not finished after $limit (--timeout): stopped\$"
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
