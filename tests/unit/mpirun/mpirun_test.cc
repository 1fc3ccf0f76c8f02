// SPDX-License-Identifier: Apache-2.0
#include "launcher/mpi/mpirun.h"

#include <doctest/doctest.h>

namespace hv::launcher {
namespace {

TEST_CASE("mpirun tells Open MPI and Hydra apart by what they say of themselves") {
  const auto old = read_mpirun_version("x", "mpirun.openmpi (OpenRTE) 4.1.4\n\nReport bugs\n");
  REQUIRE(old);
  CHECK((old->kind == MpiKind::kOpenMpi && old->major == 4));
  const auto newer = read_mpirun_version("x", "mpirun (Open MPI) 5.0.3\n");
  REQUIRE(newer);
  CHECK((newer->major == 5 && newer->version == "mpirun (Open MPI) 5.0.3"));
  const auto hydra = read_mpirun_version("x", "HYDRA build details:\n    Version:     4.0.2\n");
  REQUIRE(hydra);
  CHECK((hydra->kind == MpiKind::kHydra && hydra->version == "MPICH's Hydra 4.0.2"));
  const auto intel = read_mpirun_version("x", "Intel(R) MPI Library for Linux* OS, Version 2021\n");
  REQUIRE(intel);
  CHECK(intel->kind == MpiKind::kHydra);
}

TEST_CASE("mpirun of neither kind is none") {
  CHECK(!read_mpirun_version("x", ""));
  CHECK(!read_mpirun_version("x", "lam 7\nVersion: 3\n"));
  CHECK(!read_mpirun_version("x", "HYDRA build details:\n"));
}

}  // namespace
}  // namespace hv::launcher
