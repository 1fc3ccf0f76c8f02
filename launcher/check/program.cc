// Are the programs there on every host, whole, and the same?
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "launcher/allocation/host_names.h"
#include "launcher/check/probe_list.h"
#include "launcher/check/told.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr std::size_t kShownDigest = 8;

const char* program_finding(const wire::ProgramFacts& facts) {
  if (facts.path.empty()) return "program-missing";
  return facts.script.empty() ? "program-not-executable" : "script-missing";
}

// Hosts with the same trouble together; the advice is the agent's.
void judge_problems(const std::vector<ToldProgram>& program, Judgement* judgement) {
  std::vector<HostFact> problems;
  for (const ToldProgram& one : program)
    if (!one.facts->problem.empty()) problems.emplace_back(one.host->name, one.facts->problem);
  for (const FactGroup& group : group_facts(problems)) {
    const auto first = std::find_if(program.begin(), program.end(), [&group](const auto& one) {
      return one.host->name == group.hosts.front();
    });
    judgement->add(program_finding(*first->facts), group.hosts,
                   hosts_text(group.hosts) + ": " + group.fact, {{"ADVICE", first->facts->advice}});
  }
}

void judge_libraries(const std::vector<ToldProgram>& program, Judgement* judgement) {
  std::vector<HostFact> missing;
  for (const ToldProgram& one : program)
    if (!one.facts->missing_libraries.empty())
      missing.emplace_back(one.host->name,
                           one.facts->path + " lacks " + join_some(one.facts->missing_libraries));
  add_grouped("library-missing", missing, judgement);
}

// Of the distribution: there another build does the same.
bool is_of_system(const std::string& file) {
  for (const char* folder : {"/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/"})
    if (file.rfind(folder, 0) == 0 && file.rfind('/') == std::string_view(folder).size() - 1)
      return true;
  return false;
}

// A Python is judged by its version.
bool is_python(const wire::ProgramFacts& facts) {
  const std::string name = facts.path.substr(facts.path.rfind('/') + 1);
  return !facts.python.empty() && (name.rfind("python", 0) == 0 || name.rfind("pypy", 0) == 0);
}

struct JobFile {
  std::string host, path, digest;
};

void judge_content(const std::vector<JobFile>& files, const std::string& directory,
                   Judgement* judgement) {
  std::vector<HostFact> digests;
  for (const JobFile& file : files)
    if (!file.digest.empty())
      digests.emplace_back(file.host, "content " + file.digest.substr(0, kShownDigest));
  const std::vector<FactGroup> groups = group_facts(digests);
  if (groups.size() < 2) return;
  const std::string& path = files[0].path;
  const bool is_beside = path.rfind(directory + "/", 0) == 0;
  judgement->add(is_beside ? "folder-differs" : "program-differs", odd_hosts(groups),
                 path + " differs: " + groups_as_text(groups),
                 {{"FILE", shell_quote(path)}, {"FOLDER", shell_quote(directory)}});
}

void judge_program(const CheckInput& input, Judgement* judgement) {
  if (!input.has_program) return;
  const auto programs = programs_by_host(input, told_by(input, "program", judgement));
  tell_gaps(input, "libraries", judgement);
  for (std::size_t i = 0; i < programs.size(); ++i) {
    judge_problems(programs[i], judgement);
    judge_libraries(programs[i], judgement);
    std::vector<JobFile> files, scripts;
    for (const ToldProgram& one : programs[i]) {
      const wire::ProgramFacts& facts = *one.facts;
      if (!is_python(facts) && !is_of_system(facts.path))
        files.push_back({one.host->name, facts.path, facts.digest});
      if (!facts.script.empty())
        scripts.push_back({one.host->name, facts.script, facts.script_digest});
    }
    judge_content(files, input.spec.programs[i].working_directory, judgement);
    judge_content(scripts, input.spec.programs[i].working_directory, judgement);
  }
}

}  // namespace

const Probe kProgramProbe{
    "program",
    "each program on each host: whether it is found and could be executed, the libraries that its "
    "loader lists, its content, and the script that Python is to run; of env, nice, nohup, "
    "numactl, setsid, stdbuf, taskset, timeout and ionice what they start",
    {{"program-missing", Severity::kCannotStart,
      "a program is not found on a host, or is not executable", "ranks there could not start",
      "install it on $HOST, or name it by a path that all hosts have"},
     {"program-not-executable", Severity::kCannotStart,
      "a program's interpreter or loader is missing on a host, the host is of another kind of "
      "machine, the program's file is cut off, or its arguments and environment are too long",
      "ranks there could not start",
      "install its interpreter on $HOST, or take a program that is built for that kind of machine"},
     {"script-missing", Severity::kCannotStart,
      "the script that Python is to run cannot be read on a host", "ranks there would end at once",
      "copy it to $HOST, or start in a folder that all hosts share (--wdir)"},
     {"library-missing", Severity::kCannotStart,
      "a program's loader does not find a shared library, or finds it too old",
      "ranks there would end before their first line",
      "install it there, or say where it lies: -x LD_LIBRARY_PATH=/opt/lib"},
     {"program-differs", Severity::kHarms,
      "a program has another content on some hosts; those in /usr/bin and Pythons do not count",
      "ranks run different code", "rsync -a $FILE $HOST:$FILE"},
     {"folder-differs", Severity::kHarms,
      "a program or script in the working directory has another content on some hosts",
      "the working directory is not one shared folder, and ranks run different code",
      "rsync -a $FOLDER/ $HOST:$FOLDER/"}},
    judge_program};

}  // namespace hv::launcher
