// Tests of launcher/supervise/report/summary_file.h.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/report/summary_file.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "src/base/error.h"
#include "tests/unit/temporary_folder.h"

using namespace hv;
using namespace hv::launcher;

TEST_CASE("a summary replaces what the file held, whole, and not before it is written") {
  const tests::TemporaryFolder directory;
  const std::string path = directory.path() + "/end.json";
  std::ofstream(path) << "an older and much longer summary";
  SummaryFile file(path);
  CHECK(tests::file_content(path) == "an older and much longer summary");
  CHECK(file.write("{}\n").ok());
  CHECK(tests::file_content(path) == "{}\n");
}

TEST_CASE("a path that cannot be opened is an error before the job") {
  const tests::TemporaryFolder directory;
  ::mkfifo((directory.path() + "/fifo").c_str(), 0600);
  for (const char* name : {"/nowhere/end.json", "", "/fifo"}) {
    CAPTURE(name);
    std::string text;
    try {
      const SummaryFile file(directory.path() + name);
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kUsage);
      text = error.what();
    }
    CHECK(text.find("open --summary " + directory.path()) == 0);
  }
}

TEST_CASE("a full disk is reported") {
  SummaryFile file("/dev/full");
  const Status written = file.write("{}\n");
  CHECK_FALSE(written.ok());
  CHECK(written.message.find("write --summary /dev/full: ") == 0);
}

TEST_CASE("no path is no summary") { CHECK(SummaryFile("").write("{}\n").ok()); }
