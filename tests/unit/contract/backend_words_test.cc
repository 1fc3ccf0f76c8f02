// SPDX-License-Identifier: Apache-2.0
#include "src/contract/backend_words.h"

#include <doctest/doctest.h>

TEST_CASE("a list of backends has its words in order, with blanks beside them or not") {
  const std::vector<std::string> both{"mpi", "native"};
  CHECK(hv::backend_words("").empty());
  for (const char* list : {"mpi,native", "mpi, native", " mpi ,\tnative "}) {
    CAPTURE(std::string(list));
    CHECK(hv::is_backend_list(list));
    CHECK(hv::backend_words(list) == both);
    CHECK(hv::names_mpi(list));
  }
  CHECK_FALSE(hv::names_mpi("native"));
}

TEST_CASE("what is no list of backends is none") {
  for (const char* list : {"ncl", "mpi,,native", "mpi native", "MPI", " "}) {
    CAPTURE(std::string(list));
    CHECK_FALSE(hv::is_backend_list(list));
  }
}
