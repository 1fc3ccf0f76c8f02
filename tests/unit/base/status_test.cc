// Tests of src/base/status.
// SPDX-License-Identifier: Apache-2.0
#include "src/base/status.h"

#include <doctest/doctest.h>

#include <cerrno>
#include <set>

TEST_CASE("only kOk is ok, whatever the message says") {
  CHECK(hv::Status::success().ok());
  CHECK(hv::Status{}.ok());
  CHECK(hv::Status{hv::StatusCode::kOk, "words"}.ok());
  for (std::uint32_t code = 1; code <= 12; ++code) {
    CAPTURE(code);
    CHECK_FALSE(hv::Status{static_cast<hv::StatusCode>(code), ""}.ok());
  }
}

TEST_CASE("system_status says what was being done and the system's reason") {
  const hv::Status status = hv::system_status("open /x", ENOENT);
  CHECK(status.code == hv::StatusCode::kSystem);
  CHECK(status.message == "open /x: No such file or directory");
  CHECK(hv::system_status("read", 4242).message == "read: Unknown error 4242");
}

TEST_CASE("each status has its own name, and an unknown number has one, too") {
  std::set<std::string> names;
  for (std::uint32_t code = 0; code <= 11; ++code) {
    CAPTURE(code);
    const std::string name = hv::status_name(static_cast<hv::StatusCode>(code));
    CHECK(name != "unknown status");
    CHECK(names.insert(name).second);
  }
  CHECK(std::string(hv::status_name(static_cast<hv::StatusCode>(13))) == "unknown status");
  CHECK(std::string(hv::status_name(static_cast<hv::StatusCode>(~0u))) == "unknown status");
}

TEST_CASE("the names users see for a lost peer and a bad environment stay as documented") {
  CHECK(std::string(hv::status_name(hv::StatusCode::kOk)) == "ok");
  CHECK(std::string(hv::status_name(hv::StatusCode::kPeerLost)) == "peer lost");
  CHECK(std::string(hv::status_name(hv::StatusCode::kMismatch)) == "mismatch between ranks");
  CHECK(std::string(hv::status_name(hv::StatusCode::kContract)) == "bad rank environment");
}
