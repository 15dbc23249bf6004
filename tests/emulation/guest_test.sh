#!/usr/bin/env bash
# Tests of what guests show of their topology, and of refused registrations:
# guest_test.sh GDR SOURCE CASE COMPARE_CAPTURE.
set -uo pipefail
gdr=$1 source=$2 case=$3 compare_capture=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }

# emulate ARGUMENT...: output in $work/out
# How many times longer guests take here than usual (kernel.sh).
slowness=$(cat "${GDR_GUEST_SLOWNESS:-/dev/null}" 2>/dev/null || true)
emulate() { "$gdr" emulate --timeout $((280 * ${slowness:-1}))s "$@" >"$work/out" 2>&1 || fail "gdr emulate $*: $(tail -n 20 "$work/out")"; }

# same_machine TOPOLOGY [--set SETTING]...: what was captured inside is the topology.
same_machine() {
  local topology=$1 settings=()
  shift
  for word; do [ "$word" = --set ] || settings+=("$word"); done
  "$compare_capture" "$topology" capture.json ${settings[@]+"${settings[@]}"} >differences 2>&1
  case $? in
    0) return ;;
    # In a virtual machine the links of switches count as unknown.
    1) grep -q '"virtual_machine": true' "$topology" && ! grep -vE ': link: |: bandwidth of ' differences >/dev/null && return ;;
  esac
  fail "the capture is not the topology: $(head -n 20 differences)"
}

# says LINE...: each extended regular expression matches a line of h0's output.
says() {
  for line; do grep -Eq "^h0\| $line\$" "$work/out" || fail "no line \"$line\" in: $(cat "$work/out")"; done
}

# Pairs and words of the verdict: "gpu0 nic1 PXB". GPUs that NVLink joins are told by that, not by their PCIe distance.
expected_distances() {
  "$gdr" check "$1" --format json | tr -d ' \n' | grep -Eo '"kind":"gpu-(nic|gpu)"[^}]*' |
    sed -En 's/.*"from":"h0\/(gpu[0-9]*)","to":"h0\/([a-z]*[0-9]*)","distance":"([^"]*)".*/\1 \2 \3/p' | grep -Ev ' (NV|XGMI)[0-9]*$' | sort
}

# seen WORD WANTED: lines of the guest that begin with WORD, without it, for the pairs in WANTED.
seen() { sed -n "s/^h0| $1 //p" "$work/out" | grep -F -f <(sed 's/ [^ ]*$/ /' <<<"$2") | sort; }

# What hwloc shows of these: where two devices meet.
where_they_meet() { sed -Ee 's/(PIX|PXB)$/bridge/' -e 's/ PHB$/ host-bridge/' -e 's/(PHB\/NODE|NODE|SYS)$/above/'; }

compile() {
  ${CC:-gcc} -Wall -Wextra -Werror "-I$source/emu/module" -o "$1" "$source/tests/emulation/$1.c" -libverbs -ldl || fail "$1.c does not compile"
}

# distances SERVER [OPTION...]: with a script "more" that the guest runs, too
distances() {
  local topology=$source/topologies/servers/$1.json wanted
  shift
  cp "$source"/tests/emulation/{distances.sh,hwloc_distances.awk} .
  cat >inside <<'END'
sh distances.sh
command -v lstopo-no-graphics >/dev/null || { echo "hwloc is skipped: hwloc-nox is not installed"; exit 0; }
lstopo-no-graphics --whole-io --of xml >tree.xml
{ for gpu in /sys/class/misc/gdr-gpu*; do echo "gpu${gpu##*gpu} $(basename "$(readlink -f "$gpu/device")")"; done; cat tree.xml; } |
  awk -f hwloc_distances.awk
END
  emulate "$topology" "$@" -- sh -c "'$gdr' capture -o capture.json; [ ! -e more ] || sh more; sh inside"
  wanted=$(expected_distances "$topology")
  [ -n "$wanted" ] || fail "gdr check gives no distances"
  # A topology may leave open whether it is PHB or NODE.
  diff <(sed 's,PHB/NODE,NODE,' <<<"$wanted") <(seen distance "$wanted") || fail "distances are not the topology's"
  same_machine "$topology" "$@"
  if grep 'hwloc is skipped' "$work/out"; then return; fi
  diff <(where_they_meet <<<"$wanted") <(seen hwloc "$wanted") || fail "hwloc sees another tree"
}

case $case in
  distances_*) distances "${case#distances_}" ;;
  dgx-a100)
    # A switch whose ports redirect, a drive, ATS, and an AMD processor.
    cat >more <<'END'
device=$(readlink -f /sys/class/misc/gdr-gpu0/device)
port=$(dirname "$device")
for file in vendor device class max_link_speed max_link_width current_link_speed current_link_width numa_node; do
  echo "gpu0 $file $(cat "$device/$file")"
done
echo "port $(cat "$port/vendor") $(cat "$port/current_link_speed") $(cat "$port/current_link_width")"
echo "bar $(sed -n 3p "$device/resource" | awk '{ print $1 }') $(sed -n 3p "$device/resource" | awk '{ print $2 }')"
echo "nic0 $(cat /sys/class/infiniband/rxe0/device/vendor) $(cat /sys/class/infiniband/rxe0/device/class)"
grep -m1 vendor_id /proc/cpuinfo; grep -m1 'cpu family' /proc/cpuinfo
cat /proc/cmdline
# TCG has no CPUID leaf for caches smaller than a socket, so the kernel warns if a socket has
# several NUMA nodes.
dmesg | grep -E 'WARNING|BUG' | grep -v topology_sane && echo "the kernel complains"
command -v lspci >/dev/null || { echo "lspci is skipped: pciutils is not installed"; exit; }
lspci -vvv -s "$(basename "$port")" | tr '\t' ' ' | grep -E 'ACSCap|ACSCtl'
lspci -vvv -s "$(basename "$device")" | tr '\t' ' ' | grep -E 'LnkSta:|MaxReadReq|ATSCtl|Region 2'
# Registers keep what is written, as real ones do: redirection is switched off.
setpci -s "$(basename "$port")" ECAP_ACS+6.w=0
lspci -vvv -s "$(basename "$port")" | tr '\t' ' ' | grep ACSCtl
END
    distances dgx-a100 --set 'h0/gpu0.acs=RR+CR+UF' --set h0/gpu0.ats=true --set h0/gpu1.link=gen4x8 --set max_payload=128B \
      --set h0/nic0.max_read_request=4KiB --set h0/nic1.relaxed_ordering=false --set h0/gpu3.bar_size=64GiB --set h0/nic2.port_rate=100Gb/s
    says 'gpu0 vendor 0x10de' 'gpu0 device 0x20b2' 'gpu0 class 0x030200' 'gpu0 max_link_speed 16.0 GT/s PCIe' \
      'gpu0 max_link_width 16' 'gpu0 current_link_speed 16.0 GT/s PCIe' 'gpu0 current_link_width 16' 'gpu0 numa_node 3' \
      'port 0x1000 16.0 GT/s PCIe 16' 'nic0 0x15b3 0x020700' 'vendor_id.*AuthenticAMD' 'cpu family.*23' '.*amd_iommu=on iommu=pt.*'
    grep -q 'the kernel complains' "$work/out" && fail "$(cat "$work/out")"
    read -r _ _ first last < <(grep '^h0| bar ' "$work/out")
    [ $((last - first + 1)) -eq $((128 << 30)) ] || fail "the BAR is $((last - first + 1)) bytes"
    if ! grep 'lspci is skipped' "$work/out"; then
      says '.*ACSCtl:.*ReqRedir\+ CmpltRedir\+ UpstreamFwd\+.*' '.*ACSCtl:.*ReqRedir- CmpltRedir- UpstreamFwd-.*' \
        '.*ACSCap:.*ReqRedir\+.*' '.*LnkSta:.*16GT/s.*Width x16.*' '.*MaxPayload 128 bytes, MaxReadReq 512 bytes' \
        '.*ATSCtl:.*Enable\+.*' '.*Region 2: Memory.*size=128G.*'
    fi
    ;;
  registration)
    for program in gpu_ioctl register dmabuf unload; do compile $program; done
    mkdir gpus
    cat >inside <<'END'
say() { echo "$1: $(./register $2 2>&1)"; }
./gpu_ioctl
say near "rxe0 1048576 1"
say far "rxe1 1048576 1"
say window "rxe0 104857600 4"
echo gpu0-nic0,after=2,above=4096 test >/dev/gdr-refusals
say small "rxe0 4096 4"
say after "rxe0 8192 4"
cat /dev/gdr-refusals
echo none >/dev/gdr-refusals
say lifted "rxe0 8192 4"
say far-still "rxe1 8192 1"
modprobe -r nvidia_peermem
say no-peermem "rxe0 8192 1"
modprobe nvidia_peermem
say peermem "rxe0 8192 1"
printf 'bytes by CPU' | dd of=/dev/gdr-gpu0 bs=4096 seek=1 status=none
dd if=/dev/gdr-gpu0 bs=1 skip=4096 count=12 status=none; echo
modprobe vgem
./dmabuf
./unload
modprobe gdr_fakegpu
modprobe nvidia_peermem
say reloaded "rxe0 8192 1"
END
    emulate "$source/tests/emulation/one-gpu-two-nics.json" --gpu-files gpus --refuse-registration 'h0/gpu0-nic0,above=200MiB' -- sh inside
    # 224 MiB is the K40's BAR without what the driver keeps. errno 14: bad address, 95: not supported.
    says 'near: rxe0 made 1 errno 0 dmabuf 95 regions 1 registered 1048576 window 234881024 left 233832448 then 234881024' \
      'far: rxe1 made 0 errno 14 dmabuf 95 regions 0 .*' 'window: rxe0 made 2 errno 14 .* left 25165824 then 234881024' \
      'small: rxe0 made 4 errno 0 .*' 'after: rxe0 made 2 errno 14 .* registered 131072 .*' 'lifted: rxe0 made 4 errno 0 .*' \
      'gpu0-nic0,after=2,above=4096 test: 1 refused' 'gpu0-nic1,after=0,above=0 legacy-ioh: 1 refused' \
      'far-still: rxe1 made 0 errno 14 .*' 'no-peermem: rxe0 made 0 errno 14 .*' 'peermem: rxe0 made 1 errno 0 .*' 'bytes by CPU' \
      'all of it holds' 'refused while it is registered' 'reloaded: rxe0 made 1 errno 0 .*' "kernel's answer: 95 without, 95 with a dma-buf"
    [ "$(tail -c 4096 gpus/h0-gpu0.memory | head -c 9)" = "last page" ] || fail "the last page is not seen from outside"
    for line in 'h0| gdr: gpu0 on nic1 refused: legacy-ioh' 'h0| gdr: gpu0 on nic0 refused: bar-window-used-up: .*' \
      'h0| gdr: gpu0 on nic0 refused: test' 'h0| gdr: gpu0 on nic0 refused: peermem-missing'; do
      grep -q "^$line\$" "$work/out" || fail "the host does not say \"$line\": $(cat "$work/out")"
    done
    ;;
  doctor) . "$source/tests/emulation/cases/doctor.sh" ;;
  peermem_absent)
    compile register
    emulate "$source/topologies/servers/sandybridge-one-socket.json" --set nvidia_peermem=false -- \
      sh -c './register rxe0 4096 1; ls -d /sys/module/nvidia_peermem /sys/kernel/mm/memory_peers; true'
    says 'rxe0 made 0 errno 14 .*'
    grep -q '^h0| /sys/' "$work/out" && fail "there are signs of nvidia-peermem: $(cat "$work/out")"
    ;;
  *) fail "no case $case" ;;
esac
[ $failures -eq 0 ]
