// SPDX-License-Identifier: Apache-2.0
#include "launcher/probes/python.h"

#include "launcher/facts/program_file.h"
#include "launcher/facts/wrapper.h"
#include "launcher/probes/program.h"
#include "src/base/text.h"
#include "src/process/captured.h"

namespace hv::launcher {
namespace {

constexpr const char* kLibrary = "libhvrun";
constexpr const char* kMark = "hvrun-python";  // the output of start-up files precedes it

// Prints fields that each end with a null byte: the mark, executable, version, prefix, then pairs
// of a name and a version. Leaves the working directory out of sys.path, because its files are the
// job's. Searches libhvrun as python/hvrun/_library.py does.
constexpr const char* kQuery = R"(import sys
if sys.path[:1] == ['']:
    del sys.path[0]
import os
out = ['hvrun-python', sys.executable or '', '.'.join(map(str, sys.version_info[:3])), sys.prefix]
try:
    from importlib import metadata, util
except ImportError:
    metadata = None
if metadata:
    for name in ('torch', 'hvrun', 'numpy',
                 'nvidia-nccl-cu13', 'nvidia-nccl-cu12', 'nvidia-nccl-cu11',
                 'nvidia-cuda-runtime', 'nvidia-cuda-runtime-cu12', 'nvidia-cuda-runtime-cu11'):
        try:
            out += [name, metadata.version(name)]
        except Exception:
            pass
    try:
        spec = util.find_spec('hvrun')
    except Exception:
        spec = None
    candidates = [os.environ.get('HVRUN_LIBRARY')]
    for directory in spec.submodule_search_locations or [] if spec else []:
        build = os.path.join(os.path.dirname(os.path.dirname(directory)), 'build')
        candidates += [os.path.join(directory, 'lib', 'libhvrun.so.0')]
        for preset in ('release', 'dev'):
            candidates += [os.path.join(build, preset, 'lib', 'libhvrun.so')]
    candidates = [path for path in candidates if path and os.path.exists(path)]
    if candidates:
        out += ['libhvrun', candidates[0]]
sys.stdout.flush()
os.write(1, b''.join(os.fsencode(field) + b'\0' for field in out))
)";

// The options of the job's Python that set where it searches modules. The query must search there,
// too.
std::vector<std::string> search_options(const std::vector<std::string>& argv) {
  std::vector<std::string> options;
  for (std::size_t i = 1; i < argv.size() && argv[i].size() > 1 && argv[i][0] == '-'; ++i) {
    if (argv[i].find_first_of("cmWX-", 1) != std::string::npos) break;
    for (const char letter : argv[i])
      if (std::string_view("EIPsS").find(letter) != std::string_view::npos)
        options.push_back({'-', letter});
  }
  return options;
}

// The fields from the mark on; empty without a mark.
std::vector<std::string> fields_of(const std::string& text) {
  const std::size_t mark = text.rfind(std::string(kMark) + '\0');
  if (mark == std::string::npos) return {};
  return split(std::string_view(text).substr(mark, text.rfind('\0') - mark), '\0');
}

// options: empty for the interpreter of a script.
struct PythonCommand {
  std::string file;
  std::vector<std::string> options;
};

std::optional<PythonCommand> python_of(const wire::Program& program, const Environment& own) {
  std::string found;
  const std::string path = own.get_or("PATH", kDefaultPath);
  if (program.argv.empty() || find_program_there(program, path, &found)) return std::nullopt;
  if (is_python_name(found)) return PythonCommand{found, search_options(program.argv)};
  const std::string file = executed_file(found, program.directory, path);
  if (!is_python_name(file)) return std::nullopt;
  return PythonCommand{file, {}};
}

// Returns why there is no answer; empty: *facts is filled.
std::string query_python(const PythonCommand& python, const wire::Program& program,
                         const Environment& own, TimePoint until, wire::PythonFacts* facts) {
  Command command;
  command.program = python.file;
  command.argv = {python.file, "-B"};  // writes no compiled files
  command.argv.insert(command.argv.end(), python.options.begin(), python.options.end());
  command.argv.insert(command.argv.end(), {"-c", kQuery});
  command.directory = program.directory;
  command.environment = own.entries();
  const Captured captured = capture_output(command, until - now(), true);
  if (!captured.trouble.empty()) return python.file + ": " + captured.trouble;
  const auto answer = parse_python_answer(captured.text);
  if (!captured.is_well() || !answer)
    return python.file + ": " + captured.status->text() + ": " +
           printable(last_line(captured.text), 500);
  *facts = *answer;
  for (auto& [name, value] : facts->packages)
    if (name == kLibrary) value = digest_of_file(value);
  return "";
}

}  // namespace

std::optional<wire::PythonFacts> parse_python_answer(const std::string& text) {
  const std::vector<std::string> fields = fields_of(text);
  if (fields.size() < 4 || fields.size() % 2 != 0) return std::nullopt;
  wire::PythonFacts facts;
  facts.executable = fields[1];
  facts.version = fields[2];
  facts.prefix = fields[3];
  for (std::size_t i = 4; i < fields.size(); i += 2)
    facts.packages.emplace_back(fields[i], fields[i + 1]);
  return facts;
}

void inspect_python(const wire::CheckRequest& request, const Environment& environment,
                    wire::CheckReply* reply) {
  const TimePoint until = end_of_probe(request);
  for (const wire::Program& named : request.programs) {
    wire::ProgramFacts& facts = reply->programs.emplace_back();
    wire::Program program = named;
    while (const auto inner = wrapped_program(program)) program = *inner;
    const Environment own = environment_of_program(program, environment);
    const auto python = python_of(program, own);
    if (!python) continue;
    wire::PythonFacts answer;
    const std::string trouble = query_python(*python, program, own, until, &answer);
    if (trouble.empty())
      facts.python.push_back(std::move(answer));
    else
      reply->unanswered.push_back({"python", trouble});
  }
}

}  // namespace hv::launcher
