#include "topology/topology.hpp"

#include <gtest/gtest.h>

TEST(Topology, NamesOfKinds) { EXPECT_EQ(gdr::to_string(gdr::DeviceKind::pci_switch), "switch"); }
