// Where NCCL is looked for, and the words for where it is not.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/nccl/nccl_library.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>

#include "tests/unit/temporary_folder.h"

using namespace hv;
using namespace hv::nccl;

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

}  // namespace

TEST_CASE(
    "the process's own copy comes first, then HVRUN_NCCL alone, or the system's and packages") {
  const hv::tests::TemporaryFolder folder;
  const std::string package = folder / "site-packages";
  folder.folder("site-packages/nvidia/nccl/lib");
  std::ofstream(package + "/nvidia/nccl/lib/libnccl.so.2") << "x";

  const std::vector<Place> all = places("", {folder.path(), package});
  REQUIRE(all.size() == 3);
  CHECK(all[0].is_loaded);
  CHECK(all[1].path == "libnccl.so.2");
  CHECK_FALSE(all[1].is_loaded);
  CHECK(all[2].path == package + "/nvidia/nccl/lib/libnccl.so.2");

  const std::vector<Place> wanted = places("/opt/nccl/libnccl.so.2", {package});
  REQUIRE(wanted.size() == 2);
  CHECK(wanted[0].is_loaded);
  CHECK(wanted[1].path == "/opt/nccl/libnccl.so.2");
}

TEST_CASE("packages are looked for above the library, and in the environments of Python") {
  const hv::tests::TemporaryFolder folder;
  const std::string site = folder.folder("venv/lib/python3.11/site-packages");
  const std::string users = folder.folder("user/lib/python3.12/site-packages");
  const auto folders = package_folders("/a/site-packages/hvrun/lib/libhvrun-nccl.so",
                                       {folder / "venv", "", folder / "user"});
  for (const std::string& expected : {std::string("/a/site-packages"), site, users})
    CHECK(std::find(folders.begin(), folders.end(), expected) != folders.end());
}

TEST_CASE("folders of packages that have no NCCL are in the words, where there is none at all") {
  const hv::tests::TemporaryFolder folder;
  const std::string site = folder.folder("a/site-packages"), dist = folder.folder("dist-packages");
  std::vector<Place> all =
      places("", {folder.path(), site, dist, site, folder / "no/site-packages"});
  REQUIRE(all.size() == 3);
  all.erase(all.begin(), all.begin() + 2);  // what this machine has
  std::shared_ptr<const Library> library;
  const Status status = Library::open(all, &library);
  CHECK(status.code == StatusCode::kUnsupported);
  CHECK(has(status.message,
            "there is no libnccl.so.2: no Python package in " + site + " or " + dist + "; try: "));
}

TEST_CASE("without NCCL the words say what was looked for where") {
  const hv::tests::TemporaryFolder folder;
  std::ofstream(folder / "text") << "no library";
  std::shared_ptr<const Library> library;
  const Status status = Library::open({{"libnccl.so.2", true, "this process"},
                                       {folder / "none.so", false, "HVRUN_NCCL=none.so"},
                                       {folder / "text", false, "a text"}},
                                      &library);
  CHECK(status.code == StatusCode::kUnsupported);
  CHECK(has(status.message, "this process has none"));
  CHECK(has(status.message, "HVRUN_NCCL=none.so (" + (folder / "none.so") + ": cannot open"));
  CHECK(has(status.message, "a text ("));
  CHECK(has(status.message, "pip install nvidia-nccl"));
  CHECK(library == nullptr);
}

TEST_CASE("a library of that name that is none is told as such") {
  std::shared_ptr<const Library> library;
  const Status status = Library::open({{"libm.so.6", false, "libm"}}, &library);
  CHECK(status.code == StatusCode::kUnsupported);
  CHECK(has(status.message, "libm.so.6 does not tell its version"));
  CHECK(version_text(22803) == "2.28.3");
}
