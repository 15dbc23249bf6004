# From the output of `lstopo --whole-io --of xml`: where each pair of GPUs, and each GPU and NIC,
# meets: "bridge" (below one root port), "host-bridge", or "above". GPUs are found by lines "gpuN
# BUSID" before, NICs by their interface nicN (hwloc skips software RDMA devices).
/^gpu/ { bus[$1] = $2; next }
function attribute(name, text) {
  if (!match($0, " " name "=\"[^\"]*\"")) return ""
  text = substr($0, RSTART, RLENGTH)
  sub(/^[^"]*"/, "", text)
  sub(/"$/, "", text)
  return text
}
/<object / {
  depth++
  path[depth] = path[depth - 1] "/" ++count
  kinds[path[depth]] = attribute("type") == "Bridge" ? (attribute("bridge_type") ~ /^0/ ? "host-bridge" : "bridge") : "above"
  for (gpu in bus) if (attribute("pci_busid") == bus[gpu]) place[gpu] = path[depth]
  if (attribute("name") ~ /^nic[0-9]/) place[attribute("name")] = path[depth]
  if (/\/>/) depth--
}
/<\/object>/ { depth-- }
END {
  for (a in place) for (b in place) {
    if (a !~ /^gpu/ || a == b) continue
    common = ""
    steps = split(place[a], step, "/")
    for (i = 2; i <= steps && index(place[b] "/", common "/" step[i] "/") == 1; ++i) common = common "/" step[i]
    print "hwloc " a " " b " " kinds[common]
  }
}
