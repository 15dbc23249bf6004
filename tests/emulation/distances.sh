# Inside a guest: the PCIe distance of every pair of GPUs, and of a GPU and a NIC, in nvidia-smi's words, from nothing but the
# folders of /sys.
devices() {
  for device in /sys/class/misc/gdr-gpu*; do echo "gpu${device##*gdr-gpu} $(readlink -f "$device/device")"; done
  for device in /sys/class/infiniband/rxe[0-9]*; do [ ! -e "$device" ] || echo "nic${device##*rxe} $(readlink -f "$device/device")"; done
}
devices | while read -r name folder; do echo "$name $(cat "$folder/numa_node") $folder"; done | awk '
{ name[NR] = $1; numa[NR] = $2; path[NR] = $3 }
# /sys/devices/pciDDDD:BB/PORT[/UPSTREAM/DOWNSTREAM].../DEVICE
function distance(i, j, left, right, a, b, same, switches) {
  a = split(path[i], left, "/"); b = split(path[j], right, "/")
  for (same = 0; same < a && same < b && left[same + 1] == right[same + 1];) ++same
  # Below what they share: a port of the switch where they meet, two more for each switch in
  # between, the device.
  switches = 1 + int((a - same - 2) / 2) + int((b - same - 2) / 2)
  if (numa[i] != numa[j]) return "SYS"
  if (same < 4) return "NODE"
  if (same == 4) return "PHB"
  return switches > 1 ? "PXB" : "PIX"
}
END {
  for (i = 1; i <= NR; ++i) for (j = i + 1; j <= NR; ++j)
    if (name[i] ~ /^gpu/) print "distance " name[i] " " name[j] " " distance(i, j)
}'
