#include "emu/fabric/counters.hpp"

namespace gdr::fabric {
namespace {

json::Value to_json(const Traffic& traffic) {
  return json::Object{{"frames", traffic.frames}, {"bytes", traffic.bytes.count}};
}

json::Value to_json(const DirectionCounters& counters) {
  const Drops& drops = counters.dropped;
  return json::Object{{"arrived", to_json(counters.arrived)},
                      {"passed", to_json(counters.passed)},
                      {"dropped", json::Object{{"loss", drops.loss},
                                               {"down", drops.down},
                                               {"queue", drops.queue},
                                               {"runt", drops.runt},
                                               {"filtered", drops.filtered},
                                               {"unconnected", drops.unconnected},
                                               {"stalled", drops.stalled}}},
                      {"duplicated", counters.duplicated},
                      {"reordered", counters.reordered},
                      {"corrupted", counters.corrupted},
                      {"marked", counters.marked}};
}

json::Value to_json(const RoceFlow& flow) {
  json::Object object{{"from", to_string(flow.key.source)},
                      {"to", to_string(flow.key.destination)},
                      {"qp", std::uint64_t{flow.key.destination_qp}}};
  if (flow.key.source_qp) object.emplace_back("source_qp", std::uint64_t{*flow.key.source_qp});
  object.emplace_back("kind", flow.key.response ? "responses" : "requests");
  object.emplace_back("packets", flow.packets);
  object.emplace_back("payload", flow.payload.count);
  object.emplace_back("announced", flow.announced.count);
  object.emplace_back("repeated_packets", flow.repeated_packets);
  object.emplace_back("repeated_payload", flow.repeated_payload.count);
  return object;
}

json::Value to_json(const TcpFlow& flow) {
  return json::Object{{"from", to_string(flow.key.source)},
                      {"to", to_string(flow.key.destination)},
                      {"from_port", std::int64_t{flow.key.source_port}},
                      {"to_port", std::int64_t{flow.key.destination_port}},
                      {"segments", flow.segments},
                      {"payload", flow.payload.count},
                      {"repeated_payload", flow.repeated_payload.count}};
}

}  // namespace

json::Value to_json(const FabricCounters& counters) {
  json::Array ports;
  for (const PortCounters& port : counters.ports) {
    json::Array roce;
    for (const RoceFlow& flow : port.roce) roce.push_back(to_json(flow));
    json::Array tcp;
    for (const TcpFlow& flow : port.tcp) tcp.push_back(to_json(flow));
    ports.emplace_back(json::Object{{"name", port.name},
                                    {"connected", port.connected},
                                    {"connections", port.connections},
                                    {"refused", port.refused},
                                    {"bad_streams", port.bad_streams},
                                    {"tx", to_json(port.tx)},
                                    {"rx", to_json(port.rx)},
                                    {"roce", std::move(roce)},
                                    {"roce_left_out", port.roce_left_out},
                                    {"tcp", std::move(tcp)},
                                    {"tcp_left_out", port.tcp_left_out}});
  }
  json::Object object{{"ports", std::move(ports)}};
  if (!counters.pcap_error.empty()) object.emplace_back("pcap_error", counters.pcap_error);
  return object;
}

}  // namespace gdr::fabric
