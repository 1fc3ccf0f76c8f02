// What Slurm says to hvrun: three variables of a job's GPUs and tasks, a line each; then what srun
// has said on stderr.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "launcher/spawn/slurm/srun_command.h"
#include "tests/fuzz/fuzz.h"

using namespace hv;
using namespace hv::launcher;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text = fuzz::view(data, size);
  Environment environment;
  for (const char* name : {"SLURM_GPUS_PER_TASK", "SLURM_TRES_PER_TASK", "SLURM_TASKS_PER_NODE"}) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    environment.set(name, std::string(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  const int gpus = gpus_of_nodes(environment);
  HV_CHECK(gpus >= 0 && gpus <= 1024 * 65536, "a number of GPUs, or none that is asked for");
  HV_CHECK(gpus_of_nodes(srun_environment(environment)) == 0, "srun itself hears nothing of them");
  const std::string words(text);
  for (const std::string node : {"", "n1", "node[1-2]"}) {
    constexpr std::size_t kLimit = 300;
    const std::string gist = gist_of_srun(words, node, kLimit);
    HV_CHECK(gist.size() <= 4 * kLimit + 3, "in few words");
    HV_CHECK(std::none_of(gist.begin(), gist.end(), [](unsigned char c) { return c < ' '; }),
             "in one line that leaves the terminal as it is");
  }
  HV_CHECK(!srun_advice(words).empty(), "with what to try");
  HV_CHECK(!is_agent_missing(words) || words.find("execve") != std::string::npos, "of execve");
  (void)is_agent_forbidden(words);
  return 0;
}
