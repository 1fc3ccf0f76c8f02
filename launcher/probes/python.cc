// SPDX-License-Identifier: Apache-2.0
#include "launcher/probes/python.h"

#include "launcher/facts/program_file.h"
#include "launcher/probes/program.h"
#include "launcher/probes/wrapper.h"
#include "src/base/text.h"
#include "src/process/captured.h"

namespace hv::launcher {
namespace {

constexpr const char* kLibrary = "libhvrun";
constexpr const char* kMark = "hvrun-python";  // what start-up files print comes before it

// Pieces with a null byte behind each: the mark, executable, version, prefix, then names and
// versions. The working directory is no place for it to import from: files there are the job's.
// Where libhvrun lies: as python/hvrun/_library.py looks for it.
constexpr const char* kQuestion = R"(import sys
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
    places = [os.environ.get('HVRUN_LIBRARY')]
    for folder in spec.submodule_search_locations or [] if spec else []:
        build = os.path.join(os.path.dirname(os.path.dirname(folder)), 'build')
        places += [os.path.join(folder, 'lib', 'libhvrun.so.0')]
        places += [os.path.join(build, one, 'lib', 'libhvrun.so') for one in ('release', 'dev')]
    places = [place for place in places if place and os.path.exists(place)]
    if places:
        out += ['libhvrun', places[0]]
sys.stdout.flush()
os.write(1, b''.join(os.fsencode(piece) + b'\0' for piece in out))
)";

// Options that say where Python looks for modules; the job's own, so that it looks there, too.
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

// The pieces from the mark on; none without it.
std::vector<std::string> pieces_of(const std::string& text) {
  const std::size_t mark = text.rfind(std::string(kMark) + '\0');
  if (mark == std::string::npos) return {};
  return split(std::string_view(text).substr(mark, text.rfind('\0') - mark), '\0');
}

// Python found there runs a script that names none itself, and none of its options.
struct PythonThere {
  std::string file;
  std::vector<std::string> options;
};

std::optional<PythonThere> python_of(const wire::Program& program, const Environment& own) {
  std::string found;
  const std::string path = own.get_or("PATH", kDefaultPath);
  if (program.argv.empty() || find_program_there(program, path, &found)) return std::nullopt;
  if (is_python_name(found)) return PythonThere{found, search_options(program.argv)};
  const std::string file = executed_file(found, program.directory, path);
  if (!is_python_name(file)) return std::nullopt;
  return PythonThere{file, {}};
}

// Why it did not tell; empty: it did.
std::string ask(const PythonThere& python, const wire::Program& program, const Environment& own,
                TimePoint until, wire::PythonFacts* facts) {
  Command command;
  command.program = python.file;
  command.argv = {python.file, "-B"};  // it writes no compiled files
  command.argv.insert(command.argv.end(), python.options.begin(), python.options.end());
  command.argv.insert(command.argv.end(), {"-c", kQuestion});
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
  const std::vector<std::string> pieces = pieces_of(text);
  if (pieces.size() < 4 || pieces.size() % 2 != 0) return std::nullopt;
  wire::PythonFacts facts;
  facts.executable = pieces[1];
  facts.version = pieces[2];
  facts.prefix = pieces[3];
  for (std::size_t i = 4; i < pieces.size(); i += 2)
    facts.packages.emplace_back(pieces[i], pieces[i + 1]);
  return facts;
}

void look_at_python(const wire::CheckRequest& request, const Environment& environment,
                    wire::CheckReply* reply) {
  const TimePoint until = end_of_probe(request);
  for (const wire::Program& named : request.programs) {
    wire::ProgramFacts& facts = reply->programs.emplace_back();
    wire::Program program = named;
    while (const auto inner = wrapped_program(program)) program = *inner;
    const Environment own = environment_of_program(program, environment);
    const auto python = python_of(program, own);
    if (!python) continue;
    wire::PythonFacts told;
    const std::string trouble = ask(*python, program, own, until, &told);
    if (trouble.empty())
      facts.python.push_back(std::move(told));
    else
      reply->unanswered.push_back({"python", trouble});
  }
}

}  // namespace hv::launcher
