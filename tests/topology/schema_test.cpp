// docs/topology.schema.json and the loader must agree: the loader reads the schema's examples,
// member by member.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "src/common/error.hpp"
#include "src/common/json.hpp"
#include "src/topology/topology_json.hpp"

namespace {

using gdr::json::Array;
using gdr::json::Object;
using gdr::json::Value;

const std::string project = GDR_PROJECT_DIR;

/// A document with one object of every type.
const char* const base = R"({
  "format": 1,
  "name": "every-type",
  "hosts": [
    {
      "name": "h0",
      "software": {},
      "sockets": [{"name": "cpu0"}],
      "numa_nodes": [{"name": "numa0", "socket": "cpu0"}],
      "devices": [
        {"name": "hb0", "kind": "host-bridge", "under": "numa0"},
        {"name": "sw0", "kind": "switch", "under": "hb0"},
        {"name": "gpu0", "kind": "gpu", "under": "sw0"},
        {"name": "nic0", "kind": "nic", "under": "sw0"},
        {"name": "nvme0", "kind": "nvme", "under": "sw0"},
        {"name": "nvswitch0", "kind": "nvswitch", "under": "sw0"},
        {"name": "other0", "kind": "other", "under": "sw0", "nccl": [{"tag": "pci", "attributes": {}}]}
      ],
      "nvlinks": [{"from": "gpu0", "count": 1}],
      "distances": [{"from": "gpu0", "to": "nic0", "distance": "PIX"}],
      "remarks": [{"rule": "made-up", "severity": "note", "message": "a sentence"}]
    },
    {"name": "h1", "server": "small.json"}
  ],
  "fabric": {"model": "infiniband"},
  "staging": {}
})";

using Step = std::variant<std::string, std::size_t>;

struct Type {
  std::string definition;   ///< name in the schema; empty: the root
  std::vector<Step> place;  ///< where it is in the base document
};

void PrintTo(const Type& type, std::ostream* out) { *out << type.definition; }

std::vector<Type> types() {
  const auto device = [](std::size_t i) {
    return std::vector<Step>{"hosts", std::size_t{0}, "devices", i};
  };
  const std::size_t first = 0;
  return {{"", {}},
          {"inline_host", {"hosts", first}},
          {"server_host", {"hosts", std::size_t{1}}},
          {"software", {"hosts", first, "software"}},
          {"socket", {"hosts", first, "sockets", first}},
          {"numa_node", {"hosts", first, "numa_nodes", first}},
          {"host_bridge", device(0)},
          {"pci_switch", device(1)},
          {"gpu", device(2)},
          {"nic", device(3)},
          {"nvme", device(4)},
          {"nvswitch", device(5)},
          {"other", device(6)},
          {"nccl_element", {"hosts", first, "devices", std::size_t{6}, "nccl", first}},
          {"nvlink", {"hosts", first, "nvlinks", first}},
          {"stated_distance", {"hosts", first, "distances", first}},
          {"remark", {"hosts", first, "remarks", first}},
          {"fabric", {"fabric"}},
          {"staging", {"staging"}}};
}

const Value& schema() {
  static const Value document = gdr::json::parse_file(project + "/docs/topology.schema.json");
  return document;
}

const Value& schema_of(const Type& type) {
  return type.definition.empty() ? schema() : *schema().find("$defs")->find(type.definition);
}

Value& at(Value& document, const std::vector<Step>& place) {
  Value* value = &document;
  for (const Step& step : place) {
    if (const auto* name = std::get_if<std::string>(&step)) value = value->find(*name);
    else value = &value->as<Array>()->at(std::get<std::size_t>(step));
  }
  return *value;
}

/// Empty, or the loader's error.
std::string load(const Value& document) {
  try {
    (void)gdr::read_topology(document, "test", project + "/tests/data");
    return {};
  } catch (const gdr::InputError& error) {
    return error.what();
  }
}

std::set<std::string> properties_of(const Type& type) {
  std::set<std::string> names;
  for (const auto& [name, property] : *schema_of(type).find("properties")->as<Object>())
    names.insert(name);
  return names;
}

std::set<std::string> required_of(const Type& type) {
  std::set<std::string> names;
  for (const Value& name : *schema_of(type).find("required")->as<Array>())
    names.insert(*name.as<std::string>());
  return names;
}

class Schema : public testing::TestWithParam<Type> {
 protected:
  Value document_ = gdr::json::parse(base, "base");
  Value& object_ = at(document_, GetParam().place);
};

TEST_P(Schema, BaseDocumentLoads) { EXPECT_EQ(load(document_), ""); }

TEST_P(Schema, EveryExampleIsAccepted) {
  const Value original = object_;
  for (const auto& [name, property] : *schema_of(GetParam()).find("properties")->as<Object>()) {
    const Value* examples = property.find("examples");
    ASSERT_NE(examples, nullptr) << name << " has no examples";
    // Names connect the base document, and its lists have the other types: leave both alone.
    if (original.find(name) != nullptr) continue;
    for (const Value& example : *examples->as<Array>()) {
      object_ = original;
      object_.set(name, example);
      EXPECT_EQ(load(document_), "") << name << " = " << gdr::json::dump(example);
    }
  }
}

TEST_P(Schema, WrongTypesAreRefused) {
  const Value original = object_;
  for (const std::string& name : properties_of(GetParam())) {
    for (const Value& wrong : {Value(3.5), Value(nullptr), Value(-1)}) {
      object_ = original;
      object_.set(name, wrong);
      const std::string error = load(document_);
      EXPECT_NE(error.find("/" + name + ": found "), std::string::npos) << name << ": " << error;
    }
  }
}

TEST_P(Schema, RequiredMembersAreRequired) {
  const Value original = object_;
  for (const auto& [name, value] : *original.as<Object>()) {
    object_ = original;
    std::erase_if(*object_.as<Object>(),
                  [&, wanted = name](const auto& member) { return member.first == wanted; });
    const bool says_missing =
        load(document_).find("the member \"" + name + "\" is missing") != std::string::npos;
    // Without "server" a host is inline and lacks more members.
    if (GetParam().definition == "server_host" && name == "server") continue;
    EXPECT_EQ(says_missing, required_of(GetParam()).contains(name)) << name;
  }
  for (const std::string& name : required_of(GetParam()))
    EXPECT_NE(original.find(name), nullptr) << name;
}

TEST_P(Schema, TheLoaderKnowsTheSameMembers) {
  object_.set("no_such_member", Value(1));
  const std::string error = load(document_);
  ASSERT_NE(error.find("unknown member \"no_such_member\", allowed: "), std::string::npos) << error;
  std::set<std::string> allowed;
  std::string names = error.substr(error.find("allowed: ") + 9) + ", ";
  for (std::size_t from = 0, to = 0; (to = names.find(", ", from)) != std::string::npos;
       from = to + 2)
    allowed.insert(names.substr(from, to - from));
  EXPECT_EQ(allowed, properties_of(GetParam()));
  EXPECT_EQ(*schema_of(GetParam()).find("additionalProperties"), Value(false));
}

INSTANTIATE_TEST_SUITE_P(Types, Schema, testing::ValuesIn(types()), [](const auto& type) {
  return type.param.definition.empty() ? "root" : type.param.definition;
});

TEST(SchemaFile, EveryObjectTypeIsTried) {
  std::set<std::string> tried;
  for (const Type& type : types()) tried.insert(type.definition);
  for (const auto& [name, definition] : *schema().find("$defs")->as<Object>())
    EXPECT_TRUE(definition.find("properties") == nullptr || tried.contains(name)) << name;
}

}  // namespace
