// Do ranks run in one Python, with the same torch and hvrun?
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "launcher/check/probe_list.h"
#include "launcher/check/told.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr const char* kNone = "none";
constexpr std::size_t kShownLibraryDigest = 8;

// "3.11" of "3.11.2", for two parts.
std::string first_parts(const std::string& version, int parts) {
  std::size_t end = 0;
  for (; parts > 0 && end != std::string::npos; --parts)
    end = version.find('.', end == 0 ? 0 : end + 1);
  return version.substr(0, end);
}

std::string version_of(const wire::PythonFacts& python, const std::string& package) {
  for (const auto& [name, version] : python.packages)
    if (name == package) return version;
  return kNone;
}

struct OnePython {
  std::string host;
  const wire::PythonFacts* python;
};

// What they tell, and for the fix what most of those have that have it at all.
template <class Version>
void judge_versions(const std::vector<OnePython>& pythons, const std::string& what,
                    const char* verdict, const Version& version, Judgement* judgement) {
  std::vector<HostFact> facts;
  for (const OnePython& one : pythons) facts.emplace_back(one.host, version(*one.python));
  std::vector<FactGroup> groups = group_facts(facts);
  if (groups.size() < 2) return;
  std::stable_partition(groups.begin(), groups.end(),
                        [](const FactGroup& group) { return group.fact != kNone; });
  const std::vector<std::string> odd = odd_hosts(groups);
  const auto first_odd = std::find_if(pythons.begin(), pythons.end(),
                                      [&odd](const auto& one) { return one.host == odd.front(); });
  const auto usual = std::find_if(pythons.begin(), pythons.end(), [&groups](const auto& one) {
    return one.host == groups.front().hosts.front();
  });
  judgement->add(verdict, odd, what + ": " + groups_as_text(groups),
                 {{"PYTHON", shell_quote(first_odd->python->executable)},
                  {"SAME", shell_quote(usual->python->executable)},
                  {"TORCH", version_of(*usual->python, "torch")},
                  {"NUMPY", version_of(*usual->python, "numpy")},
                  {"HVRUN", version_of(*usual->python, "hvrun")}});
}

auto package(const char* name) {
  return [name](const wire::PythonFacts& python) { return version_of(python, name); };
}

void judge_one(const std::vector<OnePython>& pythons, Judgement* judgement) {
  judge_versions(
      pythons, "Python", "python-differs",
      [](const wire::PythonFacts& python) { return first_parts(python.version, 2); }, judgement);
  judge_versions(pythons, "torch", "torch-differs", package("torch"), judgement);
  judge_versions(pythons, "hvrun", "hvrun-differs", package("hvrun"), judgement);
  std::vector<OnePython> with_hvrun, with_numpy;
  for (const OnePython& one : pythons) {
    if (version_of(*one.python, "libhvrun") != kNone) with_hvrun.push_back(one);
    if (version_of(*one.python, "numpy") != kNone) with_numpy.push_back(one);
  }
  const auto library = [](const wire::PythonFacts& python) {
    return "content " + version_of(python, "libhvrun").substr(0, kShownLibraryDigest);
  };
  judge_versions(with_hvrun, "libhvrun", "libhvrun-differs", library, judgement);
  judge_versions(
      with_numpy, "numpy", "numpy-differs",
      [](const wire::PythonFacts& python) { return first_parts(version_of(python, "numpy"), 1); },
      judgement);
}

void judge_python(const CheckInput& input, Judgement* judgement) {
  if (!input.has_program) return;
  for (const auto& program : programs_by_host(input, told_by(input, "python", judgement))) {
    std::vector<OnePython> pythons;
    for (const ToldProgram& one : program)
      for (const wire::PythonFacts& python : one.facts->python)
        pythons.push_back({one.host->name, &python});
    judge_one(pythons, judgement);
  }
}

}  // namespace

const Probe kPythonProbe{
    "python",
    "the Python of programs and scripts on each host: its version, and those of torch, hvrun, "
    "libhvrun and numpy, by their metadata",
    {{"python-differs", Severity::kHarms,
      "the first two numbers of Python's version differ between hosts",
      "packages and pickled objects of one need not fit another",
      "name the same Python for all hosts by its path, such as $SAME, and install it where it is "
      "missing: ssh $HOST $PYTHON --version"},
     {"torch-differs", Severity::kHarms, "torch differs between hosts, or some have none",
      "models, checkpoints and collectives of one version need not fit another",
      "ssh $HOST $PYTHON -m pip install torch==$TORCH"},
     {"hvrun-differs", Severity::kHarms,
      "hvrun's Python package differs between hosts, or some have none",
      "ranks of different versions need not understand each other",
      "ssh $HOST $PYTHON -m pip install hvrun==$HVRUN"},
     {"libhvrun-differs", Severity::kHarms,
      "the libhvrun that hvrun's Python package opens is of another build on some hosts",
      "ranks of different builds need not understand each other",
      "ssh $HOST $PYTHON -m pip install --force-reinstall hvrun==$HVRUN"},
     {"numpy-differs", Severity::kHarms, "the first number of numpy's version differs",
      "arrays that one pickles cannot be read by the other",
      "ssh $HOST $PYTHON -m pip install numpy==$NUMPY"}},
    judge_python};

}  // namespace hv::launcher
