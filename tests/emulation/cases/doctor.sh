# Findings of the checklist appear in a guest when something goes wrong there, and go away again. The captures are taken inside.
if ! command -v setpci >/dev/null; then
  echo "SKIP: setpci is not installed: it is in the package pciutils"
  exit 77
fi
topology=$source/tests/emulation/one-switch.json
cat >inside <<'END'
gdr=$1
capture() { "$gdr" capture -o "$1.json" 2>"$1.errors" || echo "$1 fails"; }
device=$(readlink -f /sys/class/misc/gdr-gpu0/device)
gpu=$(basename "$device") port=$(basename "$(dirname "$device")") nic=$(basename "$(readlink -f /sys/class/infiniband/rxe0/device)")
capture capture
modprobe -r nvidia_peermem; capture peermem; modprobe nvidia_peermem
setpci -s "$port" ECAP_ACS+6.w=1d; capture acs; setpci -s "$port" ECAP_ACS+6.w=0
payload=$(setpci -s "$gpu" CAP_EXP+8.w)
setpci -s "$gpu" CAP_EXP+8.w=0:e0; capture payload; setpci -s "$gpu" CAP_EXP+8.w="$payload"
requests=$(setpci -s "$nic" CAP_EXP+8.w)
setpci -s "$nic" CAP_EXP+8.w=0:7000; NCCL_IB_GID_INDEX=7 NCCL_PATH_OF_MINE=/home/someone capture requests_and_gid
setpci -s "$nic" CAP_EXP+8.w="$requests"
ulimit -l 1048576; capture after
command -v setpriv >/dev/null || { echo "no setpriv"; exit; }
setpriv --reuid=65534 --regid=65534 --clear-groups "$gdr" capture >user.json 2>user.errors || echo "the user fails"
END
emulate "$topology" -- sh inside "$gdr"
! grep fails "$work/out" || fail "a capture fails: $(cat ./*.errors)"

# The rules about problems and about what is unknown.
findings() {
  "$gdr" doctor --format json "$1.json" >"$1.report" || [ $? -eq 1 ] || fail "gdr doctor $1.json fails"
  tr -d ' \n' <"$1.report" | grep -Eo '"rule":"[^"]*","state":"(problem|unknown)"' | sed 's/"rule":"\([^"]*\)".*/\1/' | sort -u
}
# shows CAPTURE RULE...: these findings, and no others except those that the machine always has.
shows() {
  local name=$1
  shift
  diff <(printf '%s\n' "$@" | sort) <(findings "$name" | grep -vxE 'rxe-without-atomic-write') || fail "$name: other findings"
}
shows capture locked-memory-limited
shows peermem locked-memory-limited peermem-missing
shows acs locked-memory-limited acs-redirect
shows payload locked-memory-limited payload-mismatch
shows requests_and_gid locked-memory-limited small-read-requests gid-index-wrong
[ -z "$(findings after | grep -vxE 'rxe-without-atomic-write')" ] || fail "findings stay: $(findings after)"
same_machine "$topology"

# A capture contains nothing that identifies the machine.
for secret in trainer-seven '52:54:00' '5054:00ff' '0a00:0001' '10\.0\.0\.1' someone "$work"; do
  ! grep -qi -- "$secret" ./capture.json ./requests_and_gid.json || fail "\"$secret\" is in a capture"
done
grep -q 'NCCL_IB_GID_INDEX=7' requests_and_gid.json || fail "the setting is not in the capture"

# The capture of an ordinary user says what needs root.
if ! grep -q 'no setpriv' "$work/out"; then
  grep -q 'ACS, ATS, payload and read request sizes: .* needs root' user.errors || fail "not said: $(cat user.errors)"
  shows user acs-unknown
fi

# What the topology states shows, too; without it there was none of this.
host=trainer-seven
emulate "$topology" --set $host/gpu0.bar_size=256MiB --set $host/nic0.link=gen3x4 --set $host/nic0.link_capability=gen4x16 --set iommu=translate \
  --set $host/gpu0.acs=RR+CR -- "$gdr" capture -o changed.json
shows changed locked-memory-limited bar-too-small link-degraded iommu-translating acs-redirect
