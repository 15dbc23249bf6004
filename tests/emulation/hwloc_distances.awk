# Of what `lstopo --whole-io --of xml` wrote: where each pair of a GPU (its bus ID comes in lines "gpu N BUSID" before) and a NIC
# (its interface nicN: hwloc skips software RDMA devices) meets: "bridge" (below one root port), "host-bridge", or "above".
/^gpu / { bus[$2] = $3; next }
function attribute(name, text) {
  if (!match($0, " " name "=\"[^\"]*\"")) return ""
  text = substr($0, RSTART, RLENGTH)
  sub(/^[^"]*"/, "", text)
  sub(/"$/, "", text)
  return text
}
/<object / {
  depth++
  kind[depth] = attribute("type") == "Bridge" ? (attribute("bridge_type") ~ /^0/ ? "host-bridge" : "bridge") : "above"
  path[depth] = path[depth - 1] "/" ++count
  kinds[path[depth]] = kind[depth]
  for (gpu in bus) if (attribute("pci_busid") == bus[gpu]) gpu_path[gpu] = path[depth]
  if (attribute("name") ~ /^nic/) nic_path[substr(attribute("name"), 4)] = path[depth]
  if (/\/>/) depth--
}
/<\/object>/ { depth-- }
END {
  for (gpu in bus) for (nic in nic_path) {
    common = ""
    steps = split(gpu_path[gpu], step, "/")
    for (i = 2; i <= steps && index(nic_path[nic] "/", common "/" step[i] "/") == 1; ++i) common = common "/" step[i]
    print "hwloc gpu" gpu " nic" nic " " kinds[common]
  }
}
