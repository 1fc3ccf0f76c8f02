// SPDX-License-Identifier: Apache-2.0
#include "launcher/probes/folders.h"

#include <doctest/doctest.h>

#include "tests/unit/probes/asked.h"

namespace hv::launcher {
namespace {

using tests::asked;
using tests::request_for;
using tests::TemporaryFolder;

constexpr const char* kMounts =
    "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
    "23 22 0:21 / /home rw - nfs4 server:/export/home rw,vers=4.2\n"
    "24 22 0:22 / /data\\040sets rw - lustre mgs@tcp:/fs rw\n"
    "25 23 0:23 / /home/ada rw master:3 - tmpfs tmpfs rw\n"
    "26 22 0:24 / /homes rw - xfs /dev/sdb1 rw\n"
    "27 22 0:25 / /home rw - fuse.sshfs other:/home rw\n"
    "broken\n";

TEST_CASE("a directory lies on the nearest mount above it, the last of several on one point") {
  const auto device = [](const char* path) { return mount_of(path, kMounts)->device; };
  CHECK(device("/") == "/dev/vda");
  CHECK(device("/homely") == "/dev/vda");
  CHECK(device("/home") == "other:/home");
  CHECK(device("/home/ada/run") == "tmpfs");
  CHECK(device("/homes/x") == "/dev/sdb1");
  CHECK(mount_of("/data sets/x", kMounts)->kind == "lustre");
  CHECK_FALSE(mount_of("/x", "").has_value());
}

TEST_CASE(
    "directories are reported with their free space, for each program and for temporary files") {
  const TemporaryFolder folder;
  wire::CheckRequest request = request_for({"train"}, folder.path());
  request.programs.push_back({{"other"}, "/", {}});
  Environment environment;
  environment.set("TMPDIR", folder.path());
  const auto folders = asked("folders", request, environment).folders;
  REQUIRE(folders.size() == 3);
  CHECK(folders[0].role == "working directory");
  CHECK(folders[0].path == folder.path());
  CHECK(folders[0].problem == "");
  CHECK(folders[0].inode != 0);
  CHECK(folders[0].free_bytes > 0);
  CHECK(folders[0].kind != "");
  CHECK(folders[1].path == "/");
  CHECK(folders[2].role == "temporary directory");
  CHECK(folders[2].path == folder.path());
}

TEST_CASE("unusable directories are reported with the reason that a launch gives") {
  const TemporaryFolder folder;
  tests::write_file(folder / "file", "");
  Environment environment;
  environment.set("TMPDIR", folder / "gone");
  const auto missing =
      asked("folders", request_for({"train"}, folder / "none"), environment).folders;
  CHECK(missing[0].problem ==
        "change to the working directory " + (folder / "none") + ": No such file or directory");
  CHECK(missing[1].problem ==
        "write to the temporary directory " + (folder / "gone") + ": No such file or directory");
  const auto file = asked("folders", request_for({"train"}, folder / "file")).folders;
  CHECK(file[0].problem ==
        "change to the working directory " + (folder / "file") + ": Not a directory");
  CHECK(file[1].path == "/tmp");
}

}  // namespace
}  // namespace hv::launcher
