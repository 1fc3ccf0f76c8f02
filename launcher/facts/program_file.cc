// SPDX-License-Identifier: Apache-2.0
#include "launcher/facts/program_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "launcher/facts/read_file.h"
#include "src/base/text.h"
#include "src/process/command.h"

namespace hv::launcher {
namespace {

constexpr std::size_t kFirstLine = 256;  // what the kernel reads of a script

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() > end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// As the kernel cuts the line: a carriage return is no blank to it.
std::string without_blanks(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return std::string(line.substr(begin, line.find_last_not_of(" \t") - begin + 1));
}

bool is_python(const std::string& name) { return ends_with(name, ".py"); }

// What was left out on hvrun's command line. As python3 it is in every environment.
std::string advice_on_python(const std::string& name) {
  return "name python3 before it: hvrun ... python3 " + printable(name, 1000);
}

bool names_interpreter(const std::string& start) { return start.compare(0, 2, "#!") == 0; }

std::string first_line(const std::string& start) {
  return without_blanks(std::string_view(start).substr(2, start.find('\n') - 2));
}

// Executable, and text without an interpreter: the shell would take its lines for commands.
bool is_bare_python(const std::string& name, const std::string& file) {
  if (!is_python(name)) return false;
  const std::string start = read_file(file, kFirstLine).value_or("");
  return !start.empty() && !names_interpreter(start) && start.find('\0') == std::string::npos;
}

// How a file that lies there is started; it is not, as it was named.
std::string advice_on_file(const std::string& name, bool is_executable) {
  const std::string shown = printable(name, 1000);
  if (is_executable) return shown;
  if (ends_with(name, ".sh")) return "sh " + shown;
  for (const std::string_view source : {".c", ".cc", ".cpp", ".cu"})
    if (ends_with(name, source)) return "the program that is compiled from " + shown;
  return "chmod +x " + shown;
}

constexpr const char* kMeantCheck = "'hvrun --check-build' says what is there; or ";

// The word is a slip where hvrun's own options were meant; "" if not.
std::string advice_on_word(const std::string& name) {
  if (nearest(name, {"script"}, 2)) return "'hvrun script' writes a job script; or ";
  if (nearest(name, {"check-build"}, 2)) return kMeantCheck;
  const auto meant = nearest(name, {"help", "version", "env", "check"}, 1);
  // With one letter another it is a word of its own: "heap", "end", "chuck".
  if (!meant || (meant->size() == name.size() &&
                 !std::is_permutation(name.begin(), name.end(), meant->begin())))
    return "";
  if (*meant == "env") return "'hvrun env' lists what sets something; or ";
  return *meant == "check" ? kMeantCheck : "'hvrun --" + *meant + "' tells of hvrun itself; or ";
}

std::string in_directory(const std::string& name, const std::string& directory) {
  return name[0] == '/' ? name : directory + "/" + name;
}

// The name is absent, and what stands before its first blank is a program.
bool holds_arguments(const std::string& name, const std::string& path,
                     const std::string& directory) {
  const std::string first = name.substr(0, name.find_first_of(" \t"));
  if (first.empty() || first == name) return false;
  std::string reason;
  return !find_program(first, path, directory, &reason).empty() ||
         ::access(in_directory(first, directory).c_str(), X_OK) == 0;
}

std::string advice_on_missing(const std::string& name, const std::string& path,
                              const std::string& directory) {
  const bool is_path = name.find('/') != std::string::npos;
  const std::string file = in_directory(name, directory);
  struct stat info {};
  const bool exists = ::stat(file.c_str(), &info) == 0;
  // No name of a file: what a shell would understand.
  if (!exists && name.find(' ') != std::string::npos &&
      name.find_first_of("&|;<>") != std::string::npos)
    return "hvrun starts programs, and no lines of a shell: sh -c " + shell_quote(name);
  if (!exists && holds_arguments(name, path, directory))
    return "the name holds a blank: leave out the quotes around the program and its arguments";
  if (exists && S_ISDIR(info.st_mode) && is_path) return "name a program in that directory";
  if (exists && S_ISREG(info.st_mode)) {
    const bool is_executable = ::access(file.c_str(), X_OK) == 0;
    if (is_python(name) && (!is_executable || is_bare_python(name, file)))
      return advice_on_python(name);
    if (is_path) return advice_on_file(name, is_executable);
    return advice_on_file("./" + name, is_executable) + ", for " + printable(name, 1000) +
           " lies in the ranks' directory, which is not searched";
  }
  if (is_path) return "check that it lies at that path on every host, and is executable (chmod +x)";
  return advice_on_word(name) +
         "install it there, name it by its path, or set PATH there with -x PATH=...";
}

wire::Problem missing_program(const std::string& name, const std::string& path,
                              const std::string& directory, const std::string& reason) {
  const bool is_path = name.find('/') != std::string::npos;
  const std::string where =
      is_path && name[0] != '/' ? " in " + printable(directory, 1000) : std::string();
  return {"find the program " + printable(name, 1000) + where + ": " + reason,
          advice_on_missing(name, path, directory)};
}

}  // namespace

std::optional<wire::Problem> directory_problem(const wire::Program& program) {
  const std::string& directory = program.directory;
  struct stat info {};
  int error = 0;
  if (::stat(directory.c_str(), &info) != 0) {
    error = errno;
  } else if (!S_ISDIR(info.st_mode)) {
    error = ENOTDIR;
  } else if (::access(directory.c_str(), X_OK) != 0) {
    error = errno;
  }
  if (error == 0) return std::nullopt;
  const std::string& real = program.real_directory;
  const std::string real_path =
      real.empty() ? "" : " (" + printable(real, 1000) + " where hvrun runs)";
  return wire::Problem{"change to the working directory " + printable(directory, 1000) + real_path +
                           ": " + errno_text(error),
                       "create it on that host, or name another one with --wdir"};
}

std::optional<wire::Problem> find_program_there(const wire::Program& program,
                                                const std::string& path, std::string* found) {
  if (program.argv.empty() || program.argv[0].empty())
    return wire::Problem{"find the program: its name is empty",
                         "name the program after hvrun's options"};
  if (auto problem = directory_problem(program)) return problem;
  std::string reason;
  *found = find_program(program.argv[0], path, program.directory, &reason);
  if (found->empty()) return missing_program(program.argv[0], path, program.directory, reason);
  if (is_bare_python(*found, *found)) {
    const bool is_path = program.argv[0].find('/') != std::string::npos;
    return wire::Problem{
        "execute " + printable(*found, 1000) + ": its first line names no interpreter",
        advice_on_python(is_path ? program.argv[0] : *found)};
  }
  return interpreter_problem(*found, program.directory);
}

std::optional<FirstLine> first_line_of(const std::string& program) {
  const std::string start = read_file(program, kFirstLine).value_or("");
  if (!names_interpreter(start)) return std::nullopt;
  const std::string line = first_line(start);
  const std::size_t blank = std::min(line.find_first_of(" \t"), line.size());
  if (blank == 0) return std::nullopt;
  return FirstLine{line.substr(0, blank), without_blanks(std::string_view(line).substr(blank))};
}

std::optional<wire::Problem> interpreter_problem(const std::string& program,
                                                 const std::string& directory) {
  const std::string start = read_file(program, kFirstLine).value_or("");
  if (!names_interpreter(start)) return std::nullopt;
  const std::string line = first_line(start);
  const std::string interpreter = line.substr(0, line.find_first_of(" \t"));
  const bool is_relative = !interpreter.empty() && interpreter[0] != '/' && !directory.empty();
  const std::string file = is_relative ? directory + "/" + interpreter : interpreter;
  const bool is_there = file.empty() || ::access(file.c_str(), X_OK) == 0;
  const int error = errno;
  const std::string doing = "execute " + printable(program, 1000) + ": its first line ";
  if (!line.empty() && line.back() == '\r' && (!is_there || ends_with(interpreter, "/env")))
    return wire::Problem{
        doing + "has a Windows line end, which the kernel takes for a part of " +
            (is_there ? "what env is to run" : "the interpreter's name"),
        "dos2unix " + shell_quote(program) + ", or sed -i 's/\\r$//' " + shell_quote(program)};
  if (is_there) return std::nullopt;
  return wire::Problem{
      doing + "names the interpreter " + printable(interpreter) + ": " + errno_text(error),
      "install that interpreter on that host, or correct the line"};
}

}  // namespace hv::launcher
