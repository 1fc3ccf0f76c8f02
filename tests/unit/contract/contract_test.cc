// Tests of src/contract/contract.
// SPDX-License-Identifier: Apache-2.0
#include "src/contract/contract.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

namespace {

hv::Contract sample() { return {{5, 8, 1, 4, 1, 2, "abc"}, "@hvrun-abc-1", 3}; }

const char* const kNumbers[] = {"HVRUN_RANK",       "HVRUN_SIZE",       "HVRUN_LOCAL_RANK",
                                "HVRUN_LOCAL_SIZE", "HVRUN_CROSS_RANK", "HVRUN_CROSS_SIZE"};

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

TEST_CASE("a program learns how often its job was started again, which -x cannot set") {
  CHECK(environment_of(sample()).get("HVRUN_RESTART") == "3");
  CHECK(environment_of({}).get("HVRUN_RESTART") == "0");
  CHECK(hv::is_contract_name("HVRUN_RESTART"));
}

TEST_CASE("Horovod's names say the same") {
  hv::Environment environment;
  for (const auto& [name, value] : hv::horovod_environment(sample().identity))
    environment.set(name, value);
  for (const char* name : kNumbers) {
    CAPTURE(name);
    const std::string horovods = "HOROVOD_" + std::string(name).substr(6);
    CHECK(environment.get(horovods) == environment_of(sample()).get(name));
  }
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

TEST_CASE("another launcher's mark that is empty or says 0 or 1 is none") {
  for (const char* value : {"", "0", "1"}) {
    CAPTURE(value);
    hv::Environment environment;
    environment.set("WORLD_SIZE", value);
    hv::Contract read;
    CHECK(hv::read_contract(environment, &read).ok());
    CHECK(read.identity.size == 1);
  }
}

TEST_CASE("another launcher's mark that is not understood is refused, with its value") {
  for (const char* value :
       {"+2", "2 ", " 2", " ", "abc", "999999999999999999999", "-4", "01", "1 ", "0x8"}) {
    CAPTURE(value);
    for (const char* name :
         {"WORLD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"}) {
      hv::Environment environment;
      environment.set(name, value);
      hv::Contract read;
      const hv::Status status = hv::read_contract(environment, &read);
      CHECK(status.code == hv::StatusCode::kContract);
      CHECK(status.message.find(std::string(name) + "=" + value + " (") != std::string::npos);
      CHECK(status.message.find(std::string("unset ") + name) != std::string::npos);
    }
  }
}

TEST_CASE("another launcher's control bytes do not reach the message") {
  hv::Environment environment;
  environment.set("WORLD_SIZE", "\x1b[2J");
  hv::Contract read;
  CHECK(hv::read_contract(environment, &read).message.find("WORLD_SIZE=\\x1b[2J (") !=
        std::string::npos);
}

TEST_CASE("a part of the contract without HVRUN_RANK is refused, naming it") {
  for (const char* name : kNumbers) {
    if (std::string(name) == "HVRUN_RANK") continue;
    CAPTURE(name);
    hv::Environment environment;
    environment.set(name, "2");
    environment.set("WORLD_SIZE", "1");
    hv::Contract read;
    const hv::Status status = hv::read_contract(environment, &read);
    CHECK(status.code == hv::StatusCode::kContract);
    CHECK(status.message.find(std::string(name) + " is '2'") != std::string::npos);
    CHECK(status.message.find("HVRUN_RANK is not set") != std::string::npos);
  }
}

TEST_CASE("the refusal under another launcher names it and what to type instead") {
  const std::pair<const char*, const char*> cases[] = {{"WORLD_SIZE", "torchrun"},
                                                       {"PMI_SIZE", "MPI launcher"},
                                                       {"OMPI_COMM_WORLD_SIZE", "mpirun"},
                                                       {"SLURM_STEP_NUM_TASKS", "srun"}};
  for (const auto& [variable, launcher] : cases) {
    hv::Environment environment;
    environment.set(variable, "12");
    hv::Contract read;
    const std::string message = hv::read_contract(environment, &read).message;
    CAPTURE(message);
    CHECK(message.find(launcher) != std::string::npos);
    CHECK(message.find("'hvrun -np 12 program ...'") != std::string::npos);
    CHECK(message.find(std::string("unset ") + variable) != std::string::npos);
  }
}

TEST_CASE("hvrun's contract counts, whatever marks of others are around it") {
  hv::Environment environment = environment_of(sample());  // with PyTorch's WORLD_SIZE=8
  environment.set("OMPI_COMM_WORLD_SIZE", "64");
  hv::Contract read;
  REQUIRE(hv::read_contract(environment, &read).ok());
  CHECK(read.identity.size == 8);
}

TEST_CASE("a malformed or missing number is refused, naming it and nothing of it kept") {
  for (const char* name : kNumbers) {
    for (const char* value : {"", "x", "-1", "16777217", "99999999999", "1 ", "+1", "1.0", "0x1"}) {
      CAPTURE(name);
      CAPTURE(value);
      hv::Environment environment = environment_of(sample());
      environment.set(name, value);
      hv::Contract read = sample();
      const hv::Status status = hv::read_contract(environment, &read);
      CHECK(status.code == hv::StatusCode::kContract);
      CHECK(status.message == std::string("join the job: ") + name + " is '" + value +
                                  "', not a whole number from 0 to 16777216");
      CHECK(read.identity.size == 1);
      CHECK(read.agent_socket.empty());
    }
    if (std::string(name) == "HVRUN_RANK") continue;  // without it there is no contract at all
    hv::Environment environment = environment_of(sample());
    environment.unset(name);
    hv::Contract read;
    const hv::Status status = hv::read_contract(environment, &read);
    CHECK(status.code == hv::StatusCode::kContract);
    CHECK(status.message.find(std::string(name) + " is not set") != std::string::npos);
  }
}

TEST_CASE("a number's control bytes do not reach the message") {
  hv::Environment environment = environment_of(sample());
  environment.set("HVRUN_SIZE", "\x1b[2J8");
  hv::Contract read;
  CHECK(hv::read_contract(environment, &read).message.find("'\\x1b[2J8'") != std::string::npos);
}

TEST_CASE("a rank at or beyond its size is refused, the last one below it is not") {
  const struct {
    const char* name;
    const char* last;
    const char* beyond;
  } cases[] = {
      {"HVRUN_RANK", "7", "8"}, {"HVRUN_LOCAL_RANK", "3", "4"}, {"HVRUN_CROSS_RANK", "1", "2"}};
  for (const auto& [name, last, beyond] : cases) {
    CAPTURE(name);
    hv::Environment environment = environment_of(sample());
    hv::Contract read;
    environment.set(name, last);
    CHECK(hv::read_contract(environment, &read).ok());
    environment.set(name, beyond);
    const hv::Status status = hv::read_contract(environment, &read);
    CHECK(status.code == hv::StatusCode::kContract);
    CHECK(status.message.find("a rank is below its size") != std::string::npos);
  }
}

TEST_CASE("a job of no ranks is refused, one of the most is not") {
  for (const char* name : {"HVRUN_SIZE", "HVRUN_LOCAL_SIZE", "HVRUN_CROSS_SIZE"}) {
    CAPTURE(name);
    hv::Environment environment = environment_of(sample());
    hv::Contract read;
    environment.set(name, "0");
    CHECK(hv::read_contract(environment, &read).code == hv::StatusCode::kContract);
    environment.set(name, "16777216");
    CHECK(hv::read_contract(environment, &read).ok());
  }
}

// docs/contract.md, "Without hvrun": only the six numbers and other launchers' marks speak of
// several processes.
TEST_CASE("the agent's socket or the job's name without any number leaves a process alone") {
  for (const char* name : {"HVRUN_AGENT", "HVRUN_JOB_ID"}) {
    CAPTURE(name);
    hv::Environment environment;
    environment.set(name, "@hvrun-of-another");
    hv::Contract read = sample();
    REQUIRE(hv::read_contract(environment, &read).ok());
    CHECK(read.identity.rank == 0);
    CHECK(read.identity.size == 1);
    CHECK(read.agent_socket.empty());
    CHECK(read.identity.job_id.empty());
  }
}

TEST_CASE("a single rank of hvrun's needs no meeting place and no job's name") {
  hv::Environment environment = environment_of({{0, 1, 0, 1, 0, 1, ""}, ""});
  hv::Contract read = sample();
  REQUIRE(hv::read_contract(environment, &read).ok());
  CHECK(read.identity.size == 1);
  CHECK(read.agent_socket.empty());
  environment.unset("HVRUN_JOB_ID");
  environment.unset("HVRUN_AGENT");
  CHECK(hv::read_contract(environment, &read).ok());
  CHECK(read.identity.job_id.empty());
}

TEST_CASE("several ranks without a meeting place are refused") {
  hv::Environment environment = environment_of(sample());
  environment.unset("HVRUN_AGENT");
  hv::Contract read;
  CHECK(hv::read_contract(environment, &read).message.find("HVRUN_AGENT") != std::string::npos);
}

TEST_CASE("the contract's names are the ones that are written, each once, and none is a key") {
  const std::vector<std::string>& names = hv::contract_names();
  std::vector<std::string> written{hv::kJobLostAfter, hv::kResultDescriptor};  // by others
  for (const auto& [name, value] : hv::contract_environment(sample(), {"10.0.0.1", 2345, 1}))
    written.push_back(name);
  CHECK(names == written);
  CHECK(std::set(names.begin(), names.end()).size() == names.size());
  for (const std::string& name : names) CHECK(name.find("KEY") == std::string::npos);
  const auto is_ours = [](const std::string& name) { return name.rfind("HVRUN_", 0) == 0; };
  CHECK(std::is_partitioned(names.begin(), names.end(), is_ours));
  CHECK(std::count_if(names.begin(), names.end(), is_ours) == 11);
}
