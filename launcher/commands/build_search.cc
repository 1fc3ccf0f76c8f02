// Gathers the facts of check_build.h from libraries that it opens, and from Python.
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <system_error>

#include "launcher/commands/check_build.h"
#include "src/base/environment.h"
#include "src/base/symbol.h"
#include "src/base/text.h"
#include "src/base/unique_fd.h"
#include "src/process/captured.h"
#include "src/process/command.h"

namespace hv::launcher {
namespace {

constexpr auto kInspectTimeout = std::chrono::seconds(60);
constexpr const char* kLibrary = "libhvrun.so.0";

BuildFact inspect_in_child(const std::string& name, const std::function<BuildFact()>& inspect) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {name, false, "make a pipe: " + errno_text(errno)};
  UniqueFd read_end(ends[0]), write_end(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return {name, false, "fork: " + errno_text(errno)};
  if (child == 0) {
    const BuildFact fact = inspect();
    const std::string text = (fact.is_there ? "1" : "0") + fact.text.substr(0, PIPE_BUF - 1);
    (void)!::write(write_end.get(), text.data(), text.size());
    ::_exit(0);
  }
  write_end.reset();
  char buffer[PIPE_BUF];
  pollfd ready{read_end.get(), POLLIN, 0};
  const timespec limit = time_left(now() + kInspectTimeout);
  const bool is_ready = ::ppoll(&ready, 1, &limit, nullptr) > 0;
  const ssize_t got = is_ready ? ::read(read_end.get(), buffer, sizeof buffer) : 0;
  if (!is_ready) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (got > 0)
    return {name, buffer[0] == '1', std::string(buffer + 1, static_cast<std::size_t>(got) - 1)};
  return {name, false,
          is_ready
              ? "the process that opened it was ended by " + ExitStatus::from_wait(status).text()
              : "opening it takes longer than " + format_duration(kInspectTimeout)};
}

// "/opt" if this program is /opt/bin/hvrun.
std::string prefix() {
  const std::string folder = own_folder();
  const std::size_t slash = folder.rfind('/');
  return slash == std::string::npos ? ".." : folder.substr(0, slash);
}

// A path of libhvrun, or its name for the system's search. package: directory of hvrun's Python
// package; empty: none.
std::string find_library(const Environment& environment, const std::string& package) {
  if (const auto stated = environment.get_filled("HVRUN_LIBRARY")) return *stated;
  std::vector<std::string> folders{prefix() + "/lib", prefix() + "/lib64"};
  if (!package.empty()) folders.insert(folders.begin(), package + "/lib");
  for (const std::string& folder : folders) {
    const std::string file = folder + "/" + kLibrary;
    if (::access(file.c_str(), R_OK) == 0) return file;
  }
  return kLibrary;
}

std::string dl_message() {
  const char* const message = ::dlerror();
  return message == nullptr ? "no reason is given" : message;
}

// The functions of libhvrun that need no job.
struct RuntimeQueries {
  const char* (*last_error)();
  std::int32_t (*nccl_version)(std::int32_t* number);
  std::int32_t (*mpi_version)(const char** version, std::int32_t* thread_level);
  std::int32_t (*carriers)(const char** table);
};

// Returns "", or why libhvrun cannot be used.
std::string open_runtime(const std::string& library, RuntimeQueries* queries) {
  void* const opened = ::dlopen(library.c_str(), RTLD_NOW);
  if (opened == nullptr)
    return dl_message() + "; try: install libhvrun beside hvrun, or set HVRUN_LIBRARY";
  if (find_function(opened, "hvrun_last_error", &queries->last_error) &&
      find_function(opened, "hvrun_nccl_version", &queries->nccl_version) &&
      find_function(opened, "hvrun_mpi_version", &queries->mpi_version) &&
      find_function(opened, "hvrun_carriers", &queries->carriers))
    return {};
  return library + " is not of this hvrun: " + dl_message();
}

// Path of a file that this process has mapped, by the beginning of its name; "": none.
std::string mapped_file(const std::string& prefix) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::size_t path = line.find('/');
    if (path != std::string::npos && line.compare(line.rfind('/') + 1, prefix.size(), prefix) == 0)
      return line.substr(path);
  }
  return {};
}

BuildFact inspect_nccl(const std::string& library) {
  BuildFact fact{"NCCL"};
  RuntimeQueries queries{};
  std::int32_t number = 0;
  fact.text = open_runtime(library, &queries);
  if (!fact.text.empty()) return fact;
  if (queries.nccl_version(&number) != 0) {
    fact.text = queries.last_error();
    return fact;
  }
  constexpr int kMajor = 10000, kMinor = 100;
  fact.is_there = true;
  fact.text = std::to_string(number / kMajor) + "." + std::to_string(number % kMajor / kMinor) +
              "." + std::to_string(number % kMinor) + " at " + mapped_file("libnccl.so");
  return fact;
}

// A host that starts jobs may lack what the hosts that run them have.
BuildFact inspect_cuda() {
  constexpr const char* kElsewhere = ", as on many login nodes";
  constexpr int kNoDevice = 100;  // CUDA_ERROR_NO_DEVICE
  BuildFact fact{"CUDA"};
  void* const opened = ::dlopen("libcuda.so.1", RTLD_NOW);
  int (*begin)(unsigned) = nullptr;
  int (*count)(int*) = nullptr;
  int (*version)(int*) = nullptr;
  if (opened == nullptr || !find_function(opened, "cuInit", &begin)) {
    fact.text =
        std::string("no NVIDIA driver on this host") + kElsewhere + " (" + dl_message() + ")";
    return fact;
  }
  const int code = begin(0);
  fact.is_there = code == 0;
  fact.text = "a driver that does not tell its version";
  int gpus = 0, number = 0;
  if (code == 0 && find_function(opened, "cuDeviceGetCount", &count) && count(&gpus) == 0 &&
      find_function(opened, "cuDriverGetVersion", &version) && version(&number) == 0) {
    fact.text = count_of(gpus, "GPU") + ", driver for CUDA " + std::to_string(number / 1000) + "." +
                std::to_string(number % 1000 / 10);
  } else if (code == kNoDevice) {
    fact.text = std::string("no GPU on this host") + kElsewhere;
  } else if (code != 0) {
    fact.text = "CUDA's driver does not begin on this host (cuInit: error " + std::to_string(code) +
                "); try: nvidia-smi, which says more of it";
  }
  return fact;
}

BuildFact inspect_operations(const std::string& library) {
  BuildFact fact{"operations"};
  RuntimeQueries queries{};
  const char* table = nullptr;
  fact.text = open_runtime(library, &queries);
  if (!fact.text.empty()) return fact;
  fact.is_there = queries.carriers(&table) == 0;
  fact.text = fact.is_there ? table : queries.last_error();
  return fact;
}

struct MpiPart {
  const char* title;
  const char* name;  // as HVRUN_MPI has it
  const char* plugin;
};
constexpr MpiPart kMpiParts[] = {{"Open MPI", "openmpi", "libhvrun-openmpi.so"},
                                 {"MPICH", "mpich", "libhvrun-mpich.so"}};

// The plugin lies in libhvrun's directory. Call it in a child process: it changes environ.
BuildFact inspect_mpi_part(const std::string& library, const MpiPart& part) {
  std::error_code trouble;
  const std::filesystem::path folder = std::filesystem::canonical(library, trouble).parent_path();
  const std::string file = (folder / part.plugin).string();
  if (!folder.empty() && !std::filesystem::exists(file, trouble))
    return {"MPI", false, file + " is not there: hvrun was built where that MPI was not"};
  BuildFact fact{"MPI"};
  RuntimeQueries queries{};
  const char* version = nullptr;
  fact.text = open_runtime(library, &queries);
  if (!fact.text.empty()) return fact;
  set_in_process("HVRUN_MPI", part.name);
  fact.is_there = queries.mpi_version(&version, nullptr) == 0;
  fact.text = fact.is_there ? file + ", with " + version : queries.last_error();
  return fact;
}

// requested: HVRUN_MPI; the name of one MPI excludes the other.
BuildFact inspect_mpi(const std::string& library, const std::string& requested) {
  BuildFact fact{"MPI"};
  std::vector<std::string> texts;
  const bool is_named = std::any_of(std::begin(kMpiParts), std::end(kMpiParts),
                                    [&](const MpiPart& part) { return part.name == requested; });
  for (const MpiPart& part : kMpiParts) {
    if (is_named && part.name != requested) continue;
    const BuildFact found =
        inspect_in_child("MPI", [&] { return inspect_mpi_part(library, part); });
    fact.is_there = fact.is_there || found.is_there;
    texts.push_back(part.title + std::string(found.is_there ? " by " : ": ") + found.text);
  }
  fact.text = join(texts, "; ");
  if (!fact.is_there)
    fact.text += "; try: openmpi-bin and libopenmpi-dev, or mpich, and build hvrun again";
  return fact;
}

constexpr const char* kFrameworksScript =
    "import importlib.util as u, importlib.metadata as m\n"
    "def version(names):\n"
    "    for n in names:\n"
    "        try: return m.version(n)\n"
    "        except m.PackageNotFoundError: pass\n"
    "    return 'a version that is not told'\n"
    "for name, module, names in (('TensorFlow', 'tensorflow', ('tensorflow', 'tensorflow-cpu')),\n"
    "        ('PyTorch', 'torch', ('torch',)), ('MXNet', 'mxnet', ('mxnet',)),\n"
    "        ('JAX', 'jax', ('jax',))):\n"
    "    print(name, version(names) if u.find_spec(module) else '', sep='\\t')\n"
    "s = u.find_spec('hvrun')\n"
    "print('package', s.submodule_search_locations[0] if s else '', sep='\\t')\n";

// The output of the Python on PATH about frameworks and hvrun's package.
Captured run_python(const Environment& environment) {
  std::string python, reason;
  for (const char* name : {"python3", "python"})
    if (python.empty()) python = find_program(name, environment.get_or("PATH", ""), "", &reason);
  Captured output;
  output.trouble = "there is no python3 on PATH";
  if (python.empty()) return output;
  Command command;
  command.argv = {python, "-c", kFrameworksScript};
  command.environment = environment.entries();
  output = capture_output(command, kInspectTimeout);
  if (output.trouble.empty() && !output.is_well())
    output.trouble = "it ended with " + output.status->text();
  if (!output.trouble.empty()) output.trouble = python + ": " + output.trouble;
  return output;
}

std::string library_of(const Environment& environment, const std::string& printed) {
  constexpr std::string_view kMark = "package\t";
  const std::size_t package = printed.find(kMark);
  return find_library(environment, package == std::string::npos
                                       ? ""
                                       : std::string(trim(printed.substr(package + kMark.size()))));
}

}  // namespace

BuildFacts gather_build_facts(const Environment& environment) {
  const Captured output = run_python(environment);
  const std::string library = library_of(environment, output.text);
  const BuildFact cuda = inspect_in_child("CUDA", inspect_cuda);
  return {framework_facts(output.text, output.trouble),
          inspect_mpi(library, lower(environment.get_or("HVRUN_MPI", ""))),
          nccl_with(cuda, inspect_in_child("NCCL", [&] { return inspect_nccl(library); })), cuda,
          inspect_in_child("operations", [&] { return inspect_operations(library); })};
}

}  // namespace hv::launcher
