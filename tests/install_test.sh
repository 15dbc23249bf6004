#!/usr/bin/env bash
# Installs, moves what was installed, builds examples/consumer against it and runs both programs from there.
#   install_test.sh SOURCE BUILD CXX CXX_FLAGS
set -euo pipefail
source=$1 build=$2 cxx=$3 flags=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset GDR_DATA_DIR

cmake --install "$build" --prefix "$work/first" >"$work/install.log"
mv "$work/first" "$work/moved"
cmake -G Ninja -S "$source/examples/consumer" -B "$work/consumer" -D CMAKE_PREFIX_PATH="$work/moved" -D CMAKE_CXX_COMPILER="$cxx" \
  -D CMAKE_CXX_FLAGS="$flags" >"$work/configure.log" || { cat "$work/configure.log"; exit 1; }
cmake --build "$work/consumer" >"$work/build.log" || { cat "$work/build.log"; exit 1; }

fail() { echo "$*"; exit 1; }
consumer=$work/consumer/consumer

# A program takes the data of the prefix that find_package found, although the source tree is there, too.
found=$("$consumer")
case $found in
  "two-dual-socket-4gpu-1nic: h0/gpu2 to h1/gpu2, models in $work/moved/share/gdr/models"*) ;;
  *) fail "the consumer said: $found" ;;
esac
for path in gdr staged; do
  grep -Eq "^$path +[1-9][0-9.]* us +[1-9][0-9.]* GB/s$" <<<"$found" || fail "the consumer does not predict $path: $found"
done
"$consumer" "$source/topologies/clusters/two-dgx-a100.json" h0/gpu0 h1/gpu0 >"$work/a100" || fail "the consumer fails on two-dgx-a100"

# What the tool refuses, the library refuses, with the same reason.
sed 's/"nvidia_peermem": true/"nvidia_peermem": true, "maps_peer_memory": false/' "$source/tests/data/translating-iommus.json" >"$work/blocked.json"
refused=$("$consumer" "$work/blocked.json" h0/gpu0 h1/gpu0) || fail "the consumer fails on a blocked pair"
grep -q '^gdr .*not possible: h1/gpu0 and h1/nic0 cannot reach each other (iommu-translating)' <<<"$refused" || fail "the consumer does not refuse: $refused"
grep -q '^staged .* GB/s$' <<<"$refused" || fail "the consumer does not predict staged: $refused"
if "$work/moved/bin/gdr" predict "$work/blocked.json" --from h0/gpu0 --to h1/gpu0 --path gdr --format json >"$work/refused.json"; then fail "predict does not refuse"; fi
reason=$(sed -n 's/.*"reason": "\(.*\)",\{0,1\}$/\1/p' "$work/refused.json")
[ -n "$reason" ] && grep -qF "$reason" <<<"$refused" || fail "predict says: $reason; the consumer: $refused"

# The transport needs no data: both ends of examples/consumer/transfer.cpp are in one process.
transferred=$("$work/consumer/transfer" 2>"$work/transfer.log") || fail "the transfer fails: $(cat "$work/transfer.log")"
[ "$transferred" = "1MiB of 'x' arrived, immediate 7" ] || fail "the transfer said: $transferred"
[ "$(grep -c 'GPU Direct RDMA Enabled for GPU fake0 / HCA nic[01] (distance 1 <= 2), path gdr: dma-buf' "$work/transfer.log")" = 2 ] || fail "the transfer logged: $(cat "$work/transfer.log")"

# Without that data it fails, since the installed libraries do not look into the source tree; GDR_DATA_DIR helps.
mv "$work/moved/share/gdr" "$work/data"
if said=$("$consumer" 2>&1); then fail "without its data the consumer went on: $said"; fi
grep -q "GDR_DATA_DIR" <<<"$said" && ! grep -qF "$source" <<<"$said" || fail "without its data the consumer said: $said"
GDR_DATA_DIR=$work/data "$consumer" >/dev/null || fail "the consumer does not take GDR_DATA_DIR"
mv "$work/data" "$work/moved/share/gdr"

# Beside the installed tool, a program takes what is beside it, wherever it was moved.
cp "$consumer" "$work/moved/bin/"
mv "$work/moved" "$work/again"
grep -qF "$work/again/share/gdr" <<<"$("$work/again/bin/consumer")" || fail "the moved consumer does not take the data beside it"
mv "$work/again" "$work/moved"
for document in LICENSE output.md topology.md topology.schema.json; do
  [ -f "$work/moved/share/doc/gdr/$document" ] || fail "share/doc/gdr/$document is not installed"
done
"$work/moved/bin/gdr" show "$source/tests/data/small.json" | grep -q 'gpu0' || { echo "the installed gdr does not show a topology"; exit 1; }

# Every installed header compiles alone.
for header in $(cd "$work/moved/include/gdr" && find . -name '*.hpp' | sort); do
  echo "#include <gdr/$header>" | "$cxx" -std=c++20 -fsyntax-only -x c++ -I "$work/moved/include" - || { echo "$header does not compile alone"; exit 1; }
done

# Tests in emulated guests: what find_package(gdr) gives makes fixtures of the guests. Nothing is booted here.
cmake -G Ninja -S "$source/examples/emulated_test" -B "$work/emulated" -D CMAKE_PREFIX_PATH="$work/moved" -D CMAKE_CXX_COMPILER="$cxx" \
  -D CMAKE_CXX_FLAGS="$flags" >"$work/configure.log" || { cat "$work/configure.log"; exit 1; }
ctest --test-dir "$work/emulated" -N >"$work/tests"
for name in gdr-up.two-sandybridge two_hosts latency gdr-down.two-sandybridge; do
  grep -q "Test .*: $name" "$work/tests" || fail "no test $name in: $(cat "$work/tests")"
done
[ "$(grep -c 'Test .*gdr-up' "$work/tests")" = 1 ] || fail "the guests are not shared: $(cat "$work/tests")"
ctest --test-dir "$work/emulated" --show-only=json-v1 >"$work/tests.json"
grep -q "\"$work/moved/bin/gdr\"" "$work/tests.json" || fail "the tests do not run the installed gdr"
grep -q '"until ib_send_lat -d rxe0 -x 1 -n 100 $GDR_PEER_h0_NIC_0; do sleep 1; done"' "$work/tests.json" || fail "a shell command did not stay whole: $(cat "$work/tests.json")"
