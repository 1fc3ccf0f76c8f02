// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/slurm/srun_command.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "launcher/allocation/node_expression.h"
#include "src/base/name_pattern.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr std::int64_t kMostGpusOfTask = 1024, kMostTasksOfNode = 65536;

// Variables that act as srun's options (srun(1), INPUT ENVIRONMENT VARIABLES): set by sbatch, by
// salloc, or by an outer step.
const NamePatterns& names_that_change_srun() {
  static const NamePatterns names(
      {"SLURM_GPUS",           "SLURM_CPUS_PER_GPU", "SLURM_OVERCOMMIT",
       "SLURM_DIST_PLANESIZE", "SLURM_HINT",         "SLURM_NTASKS",
       "SLURM_NPROCS",         "SLURM_NTASKS_PER_*", "SLURM_DISTRIBUTION",
       "SLURM_GPUS_PER_TASK",  "SLURM_GPU_BIND",     "SLURM_EXPORT_ENV",
       "SLURM_CPU_BIND*",      "SLURM_MEM_BIND*",    "SLURM_CPUS_PER_TASK",
       "SLURM_TRES_PER_TASK",  "SLURM_ARBITRARY_*",  "SLURM_EXACT",
       "SLURM_EXCLUSIVE",      "SLURM_OVERLAP",      "SLURM_STEP_*",
       "SLURM_STEPID",         "SLURM_MPI_TYPE",     "SLURM_THREADS_PER_CORE",
       "SLURM_CORE_SPEC",      "SLURM_MULTI_PROG",   "SLURM_OPEN_MODE",
       "SLURM_LABELIO",        "SLURM_STDINMODE",    "SLURM_STDOUTMODE",
       "SLURM_STDERRMODE",     "SLURM_UNBUFFEREDIO", "SLURM_TASK_EPILOG",
       "SLURM_TASK_PROLOG",    "SLURM_WAIT",         "SLURM_KILL_BAD_EXIT",
       "SLURM_WORKING_DIR",    "SLURM_REMOTE_CWD",   "SLURM_RESV_PORTS",
       "SLURM_NODEFILE",       "SLURM_HOSTFILE",     "SLURM_BCAST*",
       "SLURM_DEBUG",          "SLURM_SRUN_*",       "SRUN_*"});
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

int gpus_of_nodes(const Environment& own) {
  // "2", "a100:2"; "cpu:4,gres/gpu:a100:2", "gres:gpu=2".
  std::string each = own.get_or("SLURM_GPUS_PER_TASK", "");
  for (const std::string& word : split(own.get_or("SLURM_TRES_PER_TASK", ""), ','))
    if (each.empty() && word.find("gpu") != std::string::npos) each = word;
  const std::size_t number = each.find_last_of(":=");
  const auto gpus = parse_integer(number == std::string::npos ? each : each.substr(number + 1));
  if (!gpus || *gpus < 1 || *gpus > kMostGpusOfTask) return 0;
  std::int64_t least = 0;
  for (const std::string& word : split(own.get_or("SLURM_TASKS_PER_NODE", ""), ',')) {
    const auto tasks = parse_integer(word.substr(0, word.find('(')));
    if (!tasks || *tasks < 1 || *tasks > kMostTasksOfNode) return 0;
    least = least == 0 ? *tasks : std::min(least, *tasks);
  }
  return static_cast<int>(*gpus * least);
}

Environment srun_environment(const Environment& own) {
  Environment result;
  for (const auto& [name, value] : own.all())
    if (!names_that_change_srun().has_match(name)) result.set(name, value);
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
