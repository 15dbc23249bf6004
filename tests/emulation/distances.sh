# Inside a guest: the distance of every GPU-NIC pair in nvidia-smi's words, from nothing but the folders of /sys.
for gpu in /sys/class/misc/gdr-gpu*; do
  for nic in /sys/class/infiniband/rxe*; do
    a=$(readlink -f "$gpu/device")
    b=$(readlink -f "$nic/device")
    read -r numa_a <"$a/numa_node"
    read -r numa_b <"$b/numa_node"
    echo "${gpu##*gdr-gpu} ${nic##*rxe} $numa_a $numa_b $a $b"
  done
done | awk '{
  # /sys/devices/pciDDDD:BB/PORT[/UPSTREAM/DOWNSTREAM]...
  a = split($5, left, "/"); b = split($6, right, "/")
  for (same = 0; same < a && same < b && left[same + 1] == right[same + 1];) ++same
  # Below what they share: a port of the switch where they meet, two more for each switch on the way, the device.
  switches = 1 + int((a - same - 2) / 2) + int((b - same - 2) / 2)
  if ($3 != $4) word = "SYS"
  else if (same < 4) word = "NODE"
  else if (same == 4) word = "PHB"
  else word = switches > 1 ? "PXB" : "PIX"
  print "distance gpu" $1 " nic" $2 " " word
}'
