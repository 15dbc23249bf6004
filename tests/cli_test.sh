#!/usr/bin/env bash
# What main promises whatever the subcommand: one line on standard error, exit code 2, no silence on a full disk.
#   cli_test.sh GDR SOURCE
set -uo pipefail
gdr=$1 source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }

# refused EXPECTED ARGUMENT...: exit code 2 and exactly this line on standard error, nothing on standard output
refused() {
  local expected=$1 code=0
  shift
  "$gdr" "$@" >"$work/out" 2>"$work/err" || code=$?
  [ $code -eq 2 ] || fail "gdr $*: exit code $code, expected 2"
  [ "$(cat "$work/err")" = "$expected" ] || fail "gdr $*: said '$(cat "$work/err")', expected '$expected'"
  [ ! -s "$work/out" ] || fail "gdr $*: wrote to standard output"
}

small=$source/tests/data/small.json
refused 'gdr: a subcommand is missing; "gdr --help" lists them'
refused 'gdr: The following argument was not expected: shw; see "gdr --help"' shw
refused 'gdr: topology is required; see "gdr show --help"' show
refused 'gdr: --format: xml not in {text,dot}; see "gdr show --help"' show "$small" --format xml
refused "gdr: $work/none.json: cannot open it: No such file or directory" show "$work/none.json"
refused "gdr: $work: it has no sys/bus/pci/devices; give / for this machine, or a folder that holds a copy of /sys" show "$work"
refused 'gdr: --set x: write KEY=VALUE, as in h0/nic0.max_read_request=4096B' show "$small" --set x
refused "gdr: $work/a b.json: cannot open it: No such file or directory" show "$work/a
b.json"

code=0
"$gdr" show "$small" >/dev/full 2>"$work/err" || code=$?
[ $code -eq 2 ] && grep -q 'No space left on device' "$work/err" || fail "a full disk: exit code $code, '$(cat "$work/err")'"
code=0
"$gdr" --help >/dev/full 2>"$work/err" || code=$?
[ $code -eq 2 ] && grep -q 'No space left on device' "$work/err" || fail "--help on a full disk: exit code $code, '$(cat "$work/err")'"
code=0
"$gdr" show "$small" >&- 2>"$work/err" || code=$?
[ $code -eq 2 ] && [ "$(wc -l <"$work/err")" -eq 1 ] || fail "standard output closed: exit code $code, '$(cat "$work/err")'"
# With standard output closed, the file that is written must not become standard output.
"$gdr" show "$small" -o "$work/tree" 2>/dev/null >&- || fail "-o with standard output closed"
"$gdr" show "$small" | cmp -s - "$work/tree" || fail "-o and standard output differ"
"$gdr" show "$small" | head -n 1 >/dev/null

"$gdr" --version | grep -qE '^gdr [0-9]+\.[0-9]+\.[0-9]+$' || fail "--version"
"$gdr" --help | grep -q 'Examples:' || fail "--help has no examples"
for command in "" show check predict explain validate import export emulate doctor capture nccl verify compare transfer; do
  # shellcheck disable=SC2086  # nothing: the tool's own help
  wide=$("$gdr" $command --help | awk 'length > 80')
  [ -z "$wide" ] || fail "$command --help is wider than 80 columns: $wide"
done
GDR_DATA_DIR=$work "$gdr" --help >/dev/null || fail "--help needs the models"
export GDR_DATA_DIR=$work
refused "gdr: GDR_DATA_DIR=$work holds no folder models/; set it to the folder that has models/ and topologies/" show "$small"
unset GDR_DATA_DIR
"$gdr" show "$small" --set h0/gpu0.link=gen1x1 | grep -q 'gpu0 *gen1x1' || fail "--set"
"$gdr" show --set acs=on "$small" >/dev/null || fail "--set before the topology takes it for a value"


# What people hold goes straight in: a table pasted from a terminal, a log, a figure.
printf '\tGPU0\tNIC0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tPIX\t0-7\t0\nNIC0\tPIX\t X \n' >"$work/matrix"
"$gdr" check - <"$work/matrix" | grep -q 'gpu0  *PIX ?' || fail "check - of a table"
"$gdr" import "$work/matrix" | grep -q '"distance": "PIX"' || fail "import of a table"
"$gdr" import "$work/matrix" -o "$work/one.json" 2>"$work/err" && [ ! -s "$work/err" ] || fail "import of one table: $(cat "$work/err")"
"$gdr" import "$work/matrix" "$work/matrix" 2>&1 >/dev/null | grep -q 'gdr: 2 inputs have a table.*gdr import A.json B.json' || fail "import of two tables says nothing"
"$gdr" import "$work/one.json" "$work/one.json" -o "$work/two.json" && "$gdr" check "$work/two.json" | grep -q 'h1' || fail "import does not join topologies"
printf 'GPU Direct RDMA Disabled for GPU c1000 / HCA 0 (distance 7 > 4)\n' | "$gdr" nccl --log - --version 2.18 | grep -q 'sockets (SYS)' || fail "nccl --log"
code=0
printf '[1] nvidia_peermem: Unknown symbol ib_register_peer_memory_client\n' | "$gdr" doctor - >"$work/out" || code=$?
[ $code -eq 1 ] && grep -q 'error: peermem-symbol-mismatch' "$work/out" || fail "doctor -: exit code $code"
printf 'h:1:2 [0] NCCL INFO Channel 00/0 via NET/IB/0\n' >"$work/nccl.txt"
"$gdr" doctor "$work/nccl.txt" | tr -s ' \n' ' ' | grep -qF "nccl.txt: a log of NCCL. gdr nccl --log $work/nccl.txt reads it" || fail "doctor of a log of NCCL: $("$gdr" doctor "$work/nccl.txt")"
"$gdr" doctor "$work/nccl.txt" --format json | grep -qF '"command": "gdr nccl --log' || fail "doctor of a log of NCCL as JSON"
code=0
echo 'nothing of interest' | "$gdr" doctor - >/dev/null || code=$?
[ $code -eq 0 ] || fail "doctor of nothing: exit code $code"
refused 'gdr: standard input: it does not describe a machine; gdr reads what lspci -tv, lspci -vvv and nvidia-smi topo -m print, XML of hwloc and NCCL, dumps of rdma_topo, folders and archives of /sys' import - < <(echo hello)
refused 'gdr: nccl: a topology is missing, or --log FILE' nccl
refused "gdr: --version is empty: write NCCL's version, as in 2.18.6, or leave it out" nccl "$source/topologies/servers/dgx-a100.json" --version ''
refused 'gdr: NCCL version "3.0": known are 2.3 to 2.30, as in 2.18.6; the decisions of other versions are unknown' nccl "$source/topologies/servers/dgx-a100.json" --version 3.0
printf 'RDMA_Write BW Test\n #bytes #iterations BW peak[Gb/sec] BW average[Gb/sec] MsgRate[Mpps]\n 1048576 5000 197 197 0.02\n' >"$work/figure"
"$gdr" verify "$source/topologies/servers/dgx-a100.json" --measured "$work/figure" | grep -q 'proves nothing' || fail "verify of host memory"
"$gdr" compare "$source/topologies/servers/dgx-a100.json" --format html | grep -q '<th>dgx-a100</th>' || fail "compare --format html"
# Guests that are up: a name is taken by a lock on its file, and `up` writes what it is into that.
mkdir -m 0700 "$work/run" "$work/run/gdr"
echo '4711 2 two-small /tmp/a b.json' >"$work/run/gdr/long-name.lock"
XDG_RUNTIME_DIR=$work/run flock "$work/run/gdr/long-name.lock" "$gdr" emulate list >"$work/out" || fail "emulate list"
[ "$(tr -s ' ' <"$work/out")" = $'NAME PROCESS HOSTS TOPOLOGY FILE\nlong-name 4711 2 two-small /tmp/a b.json' ] || fail "emulate list printed: $(cat "$work/out")"
[ "$(sed -n 's/TOPOLOGY.*//p' "$work/out" | wc -c)" -eq "$(sed -n 's/two-small.*//p' "$work/out" | wc -c)" ] || fail "emulate list: columns are not below their heads"
XDG_RUNTIME_DIR=$work/run "$gdr" emulate list >"$work/out" 2>"$work/err"
[ ! -s "$work/out" ] && [ "$(cat "$work/err")" = 'gdr: no guests are up' ] || fail "emulate list of none: $(cat "$work/out" "$work/err")"
mkdir -p "$work/machine/sys/bus/pci/devices"
"$gdr" capture --root "$work/machine" -o "$work/capture.json" 2>/dev/null && grep -q '"captured"' "$work/capture.json" || fail "capture of a folder"

# Both ends of a transfer in one process.
"$gdr" transfer --loopback --device double --memory fake --path gdr --size 8B,64KiB --iterations 20 >"$work/out" 2>"$work/err" || fail "transfer: $(cat "$work/err")"
grep -qE '^65536 +20( +[0-9.]+){3}$' "$work/out" || fail "transfer printed: $(cat "$work/out")"
grep -qF 'moved here: rdma 1310880B' "$work/out" || fail "transfer moved: $(cat "$work/out")"
"$gdr" transfer --loopback --path tcp --memory fake --latency --format json --iterations 20 2>/dev/null | grep -q '"latency_min_us": [1-9]' || fail "transfer --latency"
# A log is held against the topology by its distances, too.
for distance in 7 6; do
  printf 'h:1:2 [0] NCCL INFO NCCL version 2.18.6+cuda12.2\nh:1:2 [0] NCCL INFO GPU Direct RDMA Disabled for GPU 47000 / HCA 8 (distance %d > 4)\n' $distance >"$work/log$distance"
done
compared() { "$gdr" nccl --log "$1" "$source/topologies/servers/dgx-a100.json" --env NCCL_PXN_DISABLE=1; }
compared "$work/log7" | grep -q 'as decided 1 of 1 lines' || fail "a log as the topology has it: $(compared "$work/log7")"
compared "$work/log6" | tr -s ' \n' ' ' | grep -q 'at PHB in the log and at SYS by the topology' || fail "a log with another distance: $(compared "$work/log6")"
printf 'h:1:2 [0] NCCL INFO NCCL version 2.31.0\nh:1:2 [0] NCCL INFO GPU Direct RDMA Disabled for GPU 47000 / HCA 8 (distance 7 > 4)\n' >"$work/log-newer"
compared "$work/log-newer" | grep -q '^Not compared with' || fail "a log of a version that is not known: $(compared "$work/log-newer")"
# A table of distances has no tree that NCCL could be given.
printf '\tGPU0\tNIC0\nGPU0\t X \tPXB\nNIC0\tPXB\t X \n' >"$work/table"
refused "gdr: $work/table: it is not known what gpu0 hangs below: a table of distances shows no switches, and NCCL would take a file without them for a machine without them; import a tree as well (lspci -tv)" export nccl-xml "$work/table"
# An end that gives up does not leave the other one waiting.
code=0
timeout 20 "$gdr" transfer --loopback --device double --memory fake --size 4KiB --iterations 3 --path staged --limit 1ns >/dev/null 2>&1 || code=$?
[ $code -eq 1 ] || fail "transfer with a limit that is over at once: exit code $code"
refused 'gdr: path "rdma": it is auto, gdr, staged or tcp' transfer --loopback --path rdma
refused 'gdr: memory "gpu": it is host, or fake, bar or cuda with a number of 0 to 255 behind, as in bar:0' transfer --loopback --memory gpu --device double
refused 'gdr: --device double is in this process alone: it takes --loopback' transfer --device double

published=$source/models/published/turin-direct.json
"$gdr" validate "$published" --no-ranges >"$work/out" || fail "validate: $(tail -n 3 "$work/out")"
grep -q '^turin-samenuma-bidir' "$work/out" || fail "validate does not show a case"
wide=$("$gdr" validate "$published" | awk 'length > 80')
[ -z "$wide" ] || fail "validate prints lines wider than 80 columns: $wide"
# Names of 37 letters leave no room for their figures.
"$gdr" validate "$source/models/published/pcie-bench-ivy-bridge.json" "$source/models/published/pcie-bench-broadwell.json" --no-ranges >"$work/out"
wide=$(awk 'length > 80' "$work/out")
[ -z "$wide" ] || fail "validate prints lines wider than 80 columns: $wide"
grep -A 1 '^pciebench-bdw-iommu4k-win256K-rd-256B$' "$work/out" | tail -n 1 | grep -qE '^ {30,}[0-9.]+ +[0-9.]+ +GB/s' || fail "validate: a long name without its figures"
# Progress is for terminals.
"$gdr" validate "$published" --no-ranges 2>"$work/err" >/dev/null
[ ! -s "$work/err" ] || fail "validate writes progress into a file: $(cat "$work/err")"
if script -qec true "$work/typescript" >/dev/null 2>"$work/err" </dev/null; then
  script -qec "'$gdr' validate '$published' --no-ranges >/dev/null" "$work/typescript" >/dev/null </dev/null
  grep -q 'running published cases: 0 of 5' "$work/typescript" || fail "validate says nothing on a terminal: $(cat "$work/typescript")"
else
  echo "SKIP: no pseudo-terminal can be had here, so progress on a terminal is not looked at: $(head -n 1 "$work/err")"
fi
"$gdr" validate "$published" --no-ranges --format json | grep -q '"percentile90"' || fail "validate --format json"
sed 's/"measured": "[0-9.]*GB/"measured": "1GB/' "$published" >"$work/wrong.json"
code=0
(cd "$source" && "$gdr" validate "$work/wrong.json" --no-ranges >/dev/null) || code=$?
[ $code -eq 1 ] || fail "validate of wrong figures: exit code $code, expected 1"

two=$source/topologies/clusters/two-dgx-a100.json
"$gdr" explain "$two" --from h0/gpu0 --to h1/gpu0 --path gdr --html "$work/way.html" --trace "$work/way.trace" >"$work/out" || fail "explain with files"
grep -q '</html>' "$work/way.html" && grep -q '"traceEvents"' "$work/way.trace" || fail "explain's files are not whole"
wide=$(awk 'length > 80' "$work/out")
[ -z "$wide" ] || fail "explain prints lines wider than 80 columns: $wide"
wide=$("$gdr" predict "$two" --from h0/gpu0 --to h1/gpu0 --path staged --size 1MiB --range | awk 'length > 80')
[ -z "$wide" ] || fail "predict --range prints lines wider than 80 columns: $wide"
"$gdr" predict "$source/topologies/servers/dgx-a100.json" --from gpu0 --to nvme0 --path staged --depth 1 --size 4KiB,1MiB >"$work/out"
[ "$(grep -c 'queue depth 1$' "$work/out")" -eq 2 ] || fail "one request at a time: $(cat "$work/out")"
tr -s ' \n' ' ' <"$work/out" | grep -qE 'the longest step is: command to h0/nvme0 \(us: 4KiB [0-9.]+\); h0/nvme0 reads h0/numa3 \(us: 1MiB [0-9.]+\)' || fail "the longest step: $(cat "$work/out")"
"$gdr" predict "$source/topologies/servers/dgx-a100.json" --from gpu0 --to nvme0 --path staged --size 1MiB | grep -q 'longest step' && fail "a longest step where the queue is no limit"
refused "gdr: 16GiB make 12582913 pieces, too many for a time line; take a smaller --size" explain "$two" --from h0/gpu0 --to h1/gpu0 --path gdr --size 16GiB --html "$work/x"

if command -v dot >/dev/null; then
  "$gdr" show "$small" --format dot | dot -Tsvg -o "$work/picture.svg" 2>"$work/err" && [ ! -s "$work/err" ] || fail "dot does not read it: $(cat "$work/err")"
else
  echo "SKIP: graphviz is not installed, so the dot format is not read back"
fi
[ $failures -eq 0 ]
