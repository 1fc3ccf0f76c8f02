// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/check_build.h"

#include <doctest/doctest.h>

namespace hv::launcher {
namespace {

TEST_CASE("check_build writes horovodrun's form, and below it each reason once") {
  const BuildFacts facts{{{"PyTorch", true, "2.13.0"}},
                         {"MPI", false, "no libmpi"},
                         {"NCCL", true, "2.32.3"},
                         {"CUDA"},
                         {"operations", true, "OPERATION\n"}};
  const std::string text = check_build_text(facts);
  CHECK(text.rfind("hvrun v", 0) == 0);
  CHECK(
      text.substr(text.find('\n')) ==
      "\n\nAvailable Frameworks:\n    [X] PyTorch\n\nAvailable Controllers:\n    [ ] MPI\n    "
      "[X] Gloo\n\nAvailable Tensor Operations:\n    [X] NCCL\n    [ ] DDL\n    [ ] CCL\n    [ ] "
      "MPI\n    [X] Gloo\n\nWhat is there, and why not:\n    PyTorch: 2.13.0\n    MPI: no "
      "libmpi\n    Gloo: hvrun's own backend, native, has its place: by shared memory and TCP\n    "
      "NCCL: 2.32.3\n    DDL: hvrun has no such backend\n    CCL: hvrun has no such backend\n\n"
      "OPERATION\nWhat stands behind 'else' is for ranks that do not have what comes before it.\n"
      "'hvrun env --algorithms' has native's algorithms.\n");
}

TEST_CASE("hvrun env has a line for each backend, and who carries out what") {
  BuildFacts facts{{},
                   {"MPI", true, "4.1"},
                   {"NCCL", false, "no libnccl.so.2"},
                   {"CUDA"},
                   {"operations", true, "OPERATION\n"}};
  CHECK(backends_text(facts).find("\nnative   yes   hvrun's own: by shared memory and TCP\n"
                                  "mpi      yes   4.1\nnccl     no    no libnccl.so.2\n"
                                  "OPERATION\nWhat ") != std::string::npos);
  facts.operations = {"operations", false, "HVRUN_BACKEND is 'ncl'"};
  CHECK(backends_text(facts).find(
            "\nWho carries out what is not known: HVRUN_BACKEND is 'ncl'\n") != std::string::npos);
}

TEST_CASE("NCCL without a driver is installed, and not to be used on this host") {
  const BuildFact library{"NCCL", true, "2.28.3 at /x"}, none{"NCCL", false, "no libnccl.so.2"};
  const BuildFact driver{"CUDA", true, ""}, no_driver{"CUDA", false, "no driver"};
  CHECK((nccl_with(driver, library).is_there && nccl_with(driver, library).text == library.text));
  CHECK_FALSE(nccl_with(no_driver, library).is_there);
  CHECK(nccl_with(no_driver, library).text == "2.28.3 at /x is there, but no driver");
  CHECK((nccl_with(no_driver, none).text == none.text && !nccl_with(no_driver, none).is_there));
  BuildFacts facts{{}, {"MPI"}, nccl_with(no_driver, library), no_driver, {}};
  CHECK(check_build_text(facts).find("    [X] NCCL\n") != std::string::npos);
  facts.nccl = nccl_with(no_driver, none);
  CHECK(check_build_text(facts).find("    [ ] NCCL\n") != std::string::npos);
}

TEST_CASE("check_build knows frameworks by what Python prints of them") {
  const auto facts = framework_facts("TensorFlow\t2.21.0\nPyTorch\t2.13.0+cpu\nMXNet\t\n", "");
  REQUIRE(facts.size() == 4);
  CHECK(facts[0].text.rfind("2.21.0 is installed; hvrun has no binding", 0) == 0);
  CHECK((!facts[0].is_there && facts[1].is_there && !facts[2].is_there && !facts[3].is_there));
  CHECK((facts[1].text == "2.13.0+cpu" && facts[2].text == "not installed"));
}

TEST_CASE("check_build does not guess at frameworks where Python does not answer") {
  for (const BuildFact& fact : framework_facts("rubbish\n", "python3: it ended with exit code 1")) {
    CHECK(!fact.is_there);
    CHECK(fact.text == "unknown: python3: it ended with exit code 1");
  }
}

}  // namespace
}  // namespace hv::launcher
