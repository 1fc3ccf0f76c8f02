// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/slurm/srun_command.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "launcher/allocation/node_expression.h"
#include "launcher/allocation/scheduler.h"
#include "src/base/name_pattern.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr std::int64_t kMostGpusOfTask = 1024, kMostTasksOfNode = 65536;

// Names that begin so are Slurm's. Most act as srun's options (srun(1), INPUT ENVIRONMENT
// VARIABLES), and sbatch, salloc or an outer step has set them for another purpose.
const NamePatterns& names_of_slurm() {
  static const NamePatterns names({"SLURM_*", "SLURMD_*", "SRUN_*"});
  return names;
}

// The variables of Slurm that its commands need, and that change no step: which job, where the
// controller and the nodes are, and proofs of who asks. SLURM_JOB_GPUS is for the ranks: slurmd
// does not set it in a step. SPANK plugins read their own variables on the nodes.
// SLURM_JOB_NODELIST is not among them: srun takes its number of nodes for a limit, and the list
// may be that of one component, or of the ranks of an outer hvrun.
const NamePatterns& names_that_slurm_needs() {
  static const NamePatterns names({"SLURM_JOB_ID", "SLURM_JOBID", "SLURM_HET_SIZE",
                                   "SLURM_NODE_ALIASES", "SLURM_CONF", "SLURM_CONF_SERVER",
                                   "SLURM_CLUSTER_NAME", "SLURM_WORKING_CLUSTER", "SLURM_JWT",
                                   "SLURM_SACK_*", "SLURM_JOB_GPUS", "SLURM_SPANK_*"});
  return names;
}

std::vector<std::string> step_words(const SrunStep& step) {
  const std::string count = std::to_string(step.nodes.size());
  std::vector<std::string> words{"srun",
                                 "--overlap",
                                 "-N",
                                 count,
                                 "-n",
                                 count,
                                 "--ntasks-per-node=1",
                                 "--cpu-bind=none",
                                 "--export=ALL",
                                 "--mpi=none",
                                 "--wait=0",
                                 "--kill-on-bad-exit=0",
                                 "--job-name=hvrun",
                                 "-w",
                                 fold_names(step.nodes)};
  if (step.component >= 0) words.push_back("--het-group=" + std::to_string(step.component));
  return words;
}

bool mentions(const std::string& line, const std::string& node) {
  for (std::size_t at = line.find(node); at != std::string::npos; at = line.find(node, at + 1)) {
    const auto is_letter = [&](std::size_t i) {
      return i < line.size() &&
             (std::isalnum(static_cast<unsigned char>(line[i])) != 0 || line[i] == '-');
    };
    if (!is_letter(at + node.size()) && (at == 0 || !is_letter(at - 1))) return true;
  }
  return false;
}

// Makes lines equal that differ in numbers only, such as those of nodes.
std::string without_numbers(const std::string& line) {
  std::string result;
  for (const char c : line) {
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit || result.empty() || result.back() != '#') result += is_digit ? '#' : c;
  }
  return result;
}

}  // namespace

std::vector<std::string> srun_words(const SrunStep& step) {
  std::vector<std::string> words = step_words(step);
  if (step.gpus_per_node > 0)
    words.push_back("--gpus-per-node=" + std::to_string(step.gpus_per_node));
  if (!step.copy_as.empty()) words.push_back("--bcast=" + step.copy_as);
  words.insert(words.end(),
               {step.agent_program, "--connect", join(step.addresses, ","), "--step", step.name});
  words.insert(words.end(), step.agent_words.begin(), step.agent_words.end());
  if (!step.copy_as.empty()) words.push_back("--remove-self");
  return words;
}

std::vector<std::string> remove_words(const SrunStep& step) {
  std::vector<std::string> words = step_words(step);
  words.insert(words.end(), {"rm", "-f", step.copy_as});
  return words;
}

int gpus_of_nodes(const Environment& own, int component) {
  const std::string suffix = suffix_of_slurm_component(component);
  // "2", "a100:2"; "cpu:4,gres/gpu:a100:2", "gres:gpu=2".
  std::string each = own.get_or("SLURM_GPUS_PER_TASK" + suffix, "");
  for (const std::string& word : split(own.get_or("SLURM_TRES_PER_TASK" + suffix, ""), ','))
    if (each.empty() && word.find("gpu") != std::string::npos) each = word;
  const std::size_t number = each.find_last_of(":=");
  const auto gpus = parse_integer(number == std::string::npos ? each : each.substr(number + 1));
  if (!gpus || *gpus < 1 || *gpus > kMostGpusOfTask) return 0;
  std::int64_t least = 0;
  for (const std::string& word : split(own.get_or("SLURM_TASKS_PER_NODE" + suffix, ""), ',')) {
    const auto tasks = parse_integer(word.substr(0, word.find('(')));
    if (!tasks || *tasks < 1 || *tasks > kMostTasksOfNode) return 0;
    least = least == 0 ? *tasks : std::min(least, *tasks);
  }
  return static_cast<int>(*gpus * least);
}

Environment srun_environment(const Environment& own) {
  Environment result;
  for (const auto& [name, value] : own.all())
    if (!names_of_slurm().has_match(name) || names_that_slurm_needs().has_match(name))
      result.set(name, value);
  // Of another job, from which this one was submitted.
  if (slurm_components(own) == 0) result.unset("SLURM_HET_SIZE");
  return result;
}

bool is_agent_missing(const std::string& words) {
  return words.find("execve") != std::string::npos &&
         words.find("No such file or directory") != std::string::npos;
}

bool is_agent_forbidden(const std::string& words) {
  return words.find("execve") != std::string::npos &&
         words.find("Permission denied") != std::string::npos;
}

std::string gist_of_srun(const std::string& words, const std::string& node, std::size_t limit) {
  std::vector<std::string> lines, other_lines;
  std::set<std::string> seen;
  for (const std::string& text : split(words, '\n')) {
    const std::string line(trim(text));
    const bool is_of_node = !node.empty() && mentions(line, node);
    if (line.empty() || (!is_of_node && !seen.insert(without_numbers(line)).second)) continue;
    (is_of_node ? lines : other_lines).push_back(line);
  }
  lines.insert(lines.end(), other_lines.begin(), other_lines.end());
  return printable(join(lines, "; "), limit);
}

std::string srun_advice(const std::string& words) {
  const auto says = [&](const char* what) { return words.find(what) != std::string::npos; };
  if (says("execve"))
    return "put hvrun where the nodes see it and may run it, such as a home or project folder that "
           "they share, or "
           "take --spawner ssh";
  if (says("Invalid job id") || says("Job has been cancelled") || says("Expired or invalid job"))
    return "the job is over: submit it again";
  if (says("Node failure") || says("node(s) failed") || says("Socket timed out"))
    return "see which nodes answer (sinfo -N -l), and leave the others out (sbatch --exclude)";
  if (says("Requested node configuration is not available") || says("Requested nodes are busy"))
    return "see what else runs in this job (squeue -s), and whether Slurm is older than 20.11, "
           "which has no --overlap: take --spawner ssh there";
  if (says("unrecognized option") && says("overlap"))
    return "this Slurm is older than 20.11: take --spawner ssh";
  return "see 'scontrol show job $SLURM_JOB_ID', or reach the nodes by SSH where that is allowed "
         "(--spawner ssh)";
}

}  // namespace hv::launcher
