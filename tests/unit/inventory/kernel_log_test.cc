// Tests of what is read of the kernel's log.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/inventory/kernel_log.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/temporary_folder.h"

using namespace hv;
using namespace hv::launcher;

namespace {

constexpr std::int64_t kUptime_us = 100'000'000;

XidReading read(const std::string& log) {
  const tests::TemporaryFolder root;
  std::filesystem::create_directory(root / "dev");
  std::ofstream(root / "dev/kmsg") << log;
  return read_xids(kUptime_us, root.path());
}

}  // namespace

TEST_CASE("Xids of the kernel's log are told by GPU, with their age") {
  const XidReading reading = read(
      "6,100,2000000,-;usb 1-1: new device\n SUBSYSTEM=usb\n"
      "4,101,40000000,-;NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has "
      "fallen off the bus.\n"
      "4,102,99500000,-;NVRM: Xid (0000:AF:00): 31, Ch 00000010\n");
  CHECK(reading.problem == "");
  REQUIRE(reading.by_address.size() == 2);
  const wire::Xid xid = reading.by_address.at("0000:3b:00.0").at(0);
  CHECK(xid.number == 79);
  CHECK(xid.seconds_ago == 60);
  CHECK(xid.text == "pid='<unknown>', name=<unknown>, GPU has fallen off the bus.");
  CHECK(reading.by_address.at("0000:af:00.0").at(0).seconds_ago == 0);
}

TEST_CASE("what was before the driver was loaded again does not count") {
  const std::string xid = "4,1,1000,-;NVRM: Xid (PCI:0000:3b:00): 79, gone\n";
  const std::string loaded =
      "5,2,2000,-;NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.82.07\n";
  CHECK(read(xid).by_address.size() == 1);
  CHECK(read(xid + loaded).by_address.empty());
  CHECK(read(loaded + xid).by_address.size() == 1);
}

TEST_CASE("of many Xids the last ones are told, and what is no Xid is none") {
  std::string log;
  for (int i = 0; i < 20; ++i)
    log += "4,1," + std::to_string(i) + ",-;NVRM: Xid (PCI:0000:3b:00): " + std::to_string(i + 1) +
           ", x\n";
  const auto xids = read(log).by_address.at("0000:3b:00.0");
  REQUIRE(xids.size() == 8);
  CHECK(xids.front().number == 13);
  CHECK(xids.back().number == 20);
  for (const char* line :
       {"NVRM: Xid (PCI:0000:3b:00): 79, x\n", ";NVRM: Xid (PCI:0000:3b:00): 7\n",
        "4,1,1,-;NVRM: Xid (PCI:0000:3b:00): x, 7\n", "4,1,1,-;NVRM: Xid (\n",
        "4,1,1,-;NVRM: Xid (PCI:0000:3b:00): -1\n", "\n", ";"})
    CHECK(read(line).by_address.empty());
}

TEST_CASE("a log that cannot be read is a problem by name") {
  CHECK(read_xids(kUptime_us, "/none").problem == "/none/dev/kmsg: No such file or directory");
}
