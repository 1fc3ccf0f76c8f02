// SPDX-License-Identifier: Apache-2.0
#include "launcher/probes/program.h"

#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>

#include "launcher/facts/exec_limit.h"
#include "launcher/facts/program_file.h"
#include "launcher/facts/read_file.h"
#include "launcher/facts/wrapper.h"
#include "launcher/probes/elf_file.h"
#include "launcher/probes/libraries.h"
#include "src/base/bounded_seconds.h"
#include "src/base/text.h"
#include "src/process/command.h"
#include "src/wire/authentication.h"

namespace hv::launcher {
namespace {

constexpr std::size_t kMostDigested = 64 << 20;
constexpr double kShareOfTime = 0.8;  // of a request's time, until a probe stops waiting

std::string in_directory(const std::string& name, const std::string& directory) {
  return name.empty() || name[0] == '/' ? name : directory + "/" + name;
}

// The program that env(1) finds for a script; "" if its interpreter is not env. Options of env,
// such as -S, and assignments precede the name.
std::string program_of_env(const FirstLine& line) {
  if (base_name(line.interpreter) != "env") return {};
  for (const std::string& word : split(line.argument, ' '))
    if (!word.empty() && word[0] != '-' && word.find('=') == std::string::npos) return word;
  return {};
}

std::optional<wire::Problem> env_problem(const std::string& program, const std::string& directory,
                                         const std::string& path) {
  const auto line = first_line_of(program);
  const std::string searched = line ? program_of_env(*line) : "";
  std::string reason;
  if (searched.empty() || !find_program(searched, path, directory, &reason).empty())
    return std::nullopt;
  return wire::Problem{"execute " + printable(program, 1000) +
                           ": its first line has env look for " + printable(searched) + ": " +
                           reason,
                       "install it there, correct the line, or set PATH there with -x PATH=..."};
}

// Whether an interpreter for programs of other architectures, such as qemu, is registered with the
// kernel.
bool runs_foreign_programs() {
  const std::string directory = "/proc/sys/fs/binfmt_misc";
  for (const std::string& name : names_in(directory)) {
    const std::string text = read_file(directory + "/" + name, 4096).value_or("");
    if (text.rfind("enabled", 0) == 0 && text.find("magic 7f454c46") != std::string::npos)
      return true;
  }
  return false;
}

std::optional<wire::Problem> elf_problem(const std::string& file, const ElfFile& elf) {
  utsname names{};
  ::uname(&names);
  const std::string doing = "execute " + printable(file, 1000) + ": ";
  if (!machine_runs(names.machine, elf.machine) && !runs_foreign_programs())
    return wire::Problem{
        doing + "it is built for " + elf.machine + ", and this host is " + names.machine,
        std::string("build it for ") + names.machine + ", or leave that host out"};
  if (elf.loader.empty() || ::access(elf.loader.c_str(), X_OK) == 0) return std::nullopt;
  return wire::Problem{doing + "its loader " + printable(elf.loader) + ": " + errno_text(errno),
                       "install the C library that it is built for, or build it on that host"};
}

std::optional<wire::Problem> broken_elf_problem(const std::string& file) {
  return wire::Problem{"execute " + printable(file, 1000) +
                           ": it begins as a binary, and its header is cut off, or of another "
                           "byte order",
                       "build it, or copy it there, anew"};
}

// Whether the loader belongs to a C library. Other files that a program names as its loader are not
// run.
bool is_loader(const std::string& file) { return base_name(file).rfind("ld", 0) == 0; }

void inspect_libraries(const std::string& file, const wire::Program& program,
                       const Environment& environment, TimePoint until, wire::CheckReply* reply,
                       wire::ProgramFacts* facts) {
  const auto elf = read_elf(file);
  if (!elf && (!begins_as_elf(file) || runs_foreign_programs())) return;
  if (const auto problem = elf ? elf_problem(file, *elf) : broken_elf_problem(file)) {
    facts->problem = problem->what;
    facts->advice = problem->hint;
    return;
  }
  if (facts->interpreter.empty()) facts->interpreter = elf->loader;
  if (!is_loader(elf->loader)) return;
  LibraryList list;
  const std::string trouble =
      list_libraries(elf->loader, file, program.directory, environment, until, &list);
  if (!trouble.empty()) reply->unanswered.push_back({"libraries", trouble});
  facts->libraries = std::move(list.libraries);
  facts->missing_libraries = std::move(list.missing);
}

void inspect_script(const wire::Program& program, wire::ProgramFacts* facts) {
  const std::string script = python_target(program.argv).script;
  if (script.empty()) return;
  facts->script = in_directory(script, program.directory);
  if (::access(facts->script.c_str(), R_OK) == 0) {
    facts->script_digest = digest_of_file(facts->script);
    return;
  }
  const bool is_relative = script[0] != '/';
  facts->problem = "open the script " + printable(script, 1000) +
                   (is_relative ? " in " + printable(program.directory, 1000) : "") + ": " +
                   errno_text(errno);
  facts->advice = "check that it lies at that path on every host";
}

wire::ProgramFacts program_facts(const wire::Program& program, const Environment& environment,
                                 TimePoint until, wire::CheckReply* reply) {
  wire::ProgramFacts facts;
  if (program.argv.empty() || directory_problem(program)) return facts;
  const Environment own = environment_of_program(program, environment);
  const std::string path = own.get_or("PATH", kDefaultPath);
  auto problem = find_program_there(program, path, &facts.path);
  if (!problem) problem = env_problem(facts.path, program.directory, path);
  if (!problem) problem = exec_size_problem(facts.path, program.argv, own.entries(), exec_limits());
  if (problem) {
    facts.problem = problem->what;
    facts.advice = problem->hint;
    return facts;
  }
  // A wrapper is only looked up. The program that it starts is the one to report on.
  if (const auto inner = wrapped_program(program))
    return program_facts(*inner, environment, until, reply);
  facts.digest = digest_of_file(facts.path);
  const std::string file = executed_file(facts.path, program.directory, path);
  if (file != facts.path) facts.interpreter = file;
  inspect_libraries(file, program, own, until, reply, &facts);
  if (facts.problem.empty() && is_python_name(facts.path)) inspect_script(program, &facts);
  return facts;
}

}  // namespace

TimePoint end_of_probe(const wire::CheckRequest& request) {
  return now() + bounded_seconds(request.timeout_s * kShareOfTime);
}

Environment environment_of_program(const wire::Program& program, const Environment& environment) {
  Environment own = environment;
  own.set("PWD", program.directory);
  for (const std::string& entry : program.environment)
    if (const auto variable = split_variable(entry))
      own.set(std::string(variable->first), std::string(variable->second));
  return own;
}

std::string executed_file(const std::string& program, const std::string& directory,
                          const std::string& path) {
  const auto line = first_line_of(program);
  if (!line) return program;
  const std::string interpreter = in_directory(line->interpreter, directory);
  const std::string searched = program_of_env(*line);
  std::string reason;
  const std::string found =
      searched.empty() ? "" : find_program(searched, path, directory, &reason);
  return found.empty() ? interpreter : found;
}

std::string digest_of_file(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode) ||
      static_cast<std::uint64_t>(info.st_size) > kMostDigested)
    return "";
  const auto content = read_file(path, kMostDigested);
  return content ? content_digest(*content) : "";
}

void inspect_program(const wire::CheckRequest& request, const Environment& environment,
                     wire::CheckReply* reply) {
  const TimePoint until = end_of_probe(request);
  for (const wire::Program& program : request.programs)
    reply->programs.push_back(program_facts(program, environment, until, reply));
}

}  // namespace hv::launcher
