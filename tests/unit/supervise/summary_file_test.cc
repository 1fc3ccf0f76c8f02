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
  const tests::TemporaryFolder folder;
  const std::string path = folder.path() + "/end.json";
  std::ofstream(path) << "an older and much longer summary";
  SummaryFile file(path);
  CHECK(tests::file_content(path) == "an older and much longer summary");
  CHECK(file.write("{}\n").ok());
  CHECK(tests::file_content(path) == "{}\n");
}

TEST_CASE("a path that cannot be opened is an error before the job") {
  const tests::TemporaryFolder folder;
  ::mkfifo((folder.path() + "/fifo").c_str(), 0600);
  for (const char* name : {"/nowhere/end.json", "", "/fifo"}) {
    CAPTURE(name);
    std::string words;
    try {
      const SummaryFile file(folder.path() + name);
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kUsage);
      words = error.what();
    }
    CHECK(words.find("open --summary " + folder.path()) == 0);
  }
}

TEST_CASE("a summary that finds no room is told") {
  SummaryFile file("/dev/full");
  const Status written = file.write("{}\n");
  CHECK_FALSE(written.ok());
  CHECK(written.message.find("write --summary /dev/full: ") == 0);
}

TEST_CASE("no path is no summary") { CHECK(SummaryFile("").write("{}\n").ok()); }
