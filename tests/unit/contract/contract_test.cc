// Tests of the rank's contract. SPDX-License-Identifier: Apache-2.0
#include "src/contract/contract.h"

#include <doctest/doctest.h>

namespace {

hv::Contract sample() { return {{5, 8, 1, 4, 1, 2, "abc"}, "@hvrun-abc-1"}; }

hv::Environment environment_of(const hv::Contract& contract) {
  hv::Environment environment;
  for (const auto& [name, value] : hv::contract_environment(contract, {"10.0.0.1", 2345, 1}))
    environment.set(name, value);
  return environment;
}

}  // namespace

TEST_CASE("what the launcher writes the runtime reads back") {
  hv::Contract read;
  REQUIRE(hv::read_contract(environment_of(sample()), &read).ok());
  CHECK(read.identity.rank == 5);
  CHECK(read.identity.size == 8);
  CHECK(read.identity.local_rank == 1);
  CHECK(read.identity.local_size == 4);
  CHECK(read.identity.cross_rank == 1);
  CHECK(read.identity.cross_size == 2);
  CHECK(read.identity.job_id == "abc");
  CHECK(read.agent_socket == "@hvrun-abc-1");
}

TEST_CASE("PyTorch's names say the same") {
  const hv::Environment environment = environment_of(sample());
  CHECK(environment.get("RANK") == "5");
  CHECK(environment.get("WORLD_SIZE") == "8");
  CHECK(environment.get("LOCAL_RANK") == "1");
  CHECK(environment.get("LOCAL_WORLD_SIZE") == "4");
  CHECK(environment.get("GROUP_RANK") == "1");
  CHECK(environment.get("MASTER_ADDR") == "10.0.0.1");
  CHECK(environment.get("MASTER_PORT") == "2345");
}

TEST_CASE("alone, a process is rank 0 of 1") {
  hv::Contract read;
  REQUIRE(hv::read_contract({}, &read).ok());
  CHECK(read.identity.rank == 0);
  CHECK(read.identity.size == 1);
  CHECK(read.agent_socket.empty());
}

TEST_CASE("under another launcher a silent size of 1 is refused, naming the variable") {
  for (const char* name :
       {"WORLD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    CAPTURE(name);
    hv::Environment environment;
    environment.set(name, "4");
    hv::Contract read;
    const hv::Status status = hv::read_contract(environment, &read);
    CHECK(status.code == hv::StatusCode::kContract);
    CHECK(status.message.find(name) != std::string::npos);
    environment.set(name, "1");
    CHECK(hv::read_contract(environment, &read).ok());
  }
}

TEST_CASE("a batch script's SLURM_NTASKS is no launcher's mark") {
  hv::Environment environment;
  environment.set("SLURM_NTASKS", "8");
  environment.set("SLURM_PROCID", "0");
  hv::Contract read;
  CHECK(hv::read_contract(environment, &read).ok());
}

TEST_CASE("a malformed or missing number is refused, naming it") {
  for (const char* name : {"HVRUN_SIZE", "HVRUN_LOCAL_RANK", "HVRUN_CROSS_SIZE"}) {
    for (const char* value : {"", "x", "-1", "99999999999", "1 "}) {
      CAPTURE(name);
      CAPTURE(value);
      hv::Environment environment = environment_of(sample());
      environment.set(name, value);
      hv::Contract read;
      const hv::Status status = hv::read_contract(environment, &read);
      CHECK(status.code == hv::StatusCode::kContract);
      CHECK(status.message.find(name) != std::string::npos);
    }
  }
  hv::Environment environment = environment_of(sample());
  environment.unset("HVRUN_SIZE");
  hv::Contract read;
  CHECK(hv::read_contract(environment, &read).code == hv::StatusCode::kContract);
}

TEST_CASE("a rank at or beyond its size is refused") {
  hv::Environment environment = environment_of(sample());
  environment.set("HVRUN_RANK", "8");
  hv::Contract read;
  CHECK(hv::read_contract(environment, &read).code == hv::StatusCode::kContract);
}

TEST_CASE("several ranks without a meeting place are refused") {
  hv::Environment environment = environment_of(sample());
  environment.unset("HVRUN_AGENT");
  hv::Contract read;
  CHECK(hv::read_contract(environment, &read).message.find("HVRUN_AGENT") != std::string::npos);
}

TEST_CASE("the job's key is not in the contract") {
  for (const std::string& name : hv::contract_names()) CHECK(name.find("KEY") == std::string::npos);
}
