// SPDX-License-Identifier: Apache-2.0
#include "launcher/cli/horovod_options.h"

#include <algorithm>
#include <array>
#include <optional>

#include "launcher/cli/horovod_config.h"
#include "src/base/error.h"
#include "src/base/text.h"
#include "src/contract/runtime_knobs.h"

namespace hv::launcher {
namespace {

// An option, a variable of Horovod's without effect, or both.
struct HorovodOption {
  const char* names;         // as CLI11 has them; empty: only a variable
  const char* key;           // in the file; nullptr: none
  const char* variable;      // read by ranks; with a reason: Horovod's variable; nullptr: none
  const char* value;         // "%": the given value, "%M": in MiB; else a flag that sets this value
  const char* reason;        // why it has no effect: one sentence with its full stop
  bool is_inverted = false;  // "no" in the file means this option
  const char* cancels = "";  // key of the file that this option overrides
  bool is_list = false;      // repeated values form a list, as in horovodrun
};

constexpr const char* kHostsReduce = "Hosts reduce inside first, whenever there are several.";
constexpr const char* kHostsGather = "Hosts gather inside first, whenever there are several.";
constexpr const char* kNoTuning = "Nothing is tuned while the job runs.";
constexpr const char* kOwnController = "hvrun connects the ranks; no controller is needed.";
constexpr const char* kMpiIsAsked = "--mpi has MPI move the data.";
constexpr const char* kAlwaysTime = "Lines of the log always have their time.";
constexpr const char* kNotYet = "No backend reads it.";

// A later row beats an earlier one of the same source that sets the same variable.
constexpr std::array kHorovodOptions{
    HorovodOption{"--network-interfaces,--network-interface", nullptr, "HVRUN_INTERFACES", "%", "",
                  false, "", true},
    HorovodOption{"--tcp", nullptr, "NCCL_IB_DISABLE", "1", ""},
    HorovodOption{"--fusion-threshold-mb", "params.fusion_threshold_mb", "HVRUN_FUSION_THRESHOLD",
                  "%M", ""},
    HorovodOption{"--cache-capacity", "params.cache_capacity", "HVRUN_CACHE_CAPACITY", "%", ""},
    HorovodOption{"--timeline-filename", "timeline.filename", "HVRUN_TIMELINE", "%", ""},
    HorovodOption{"--stall-check-warning-time-seconds", "stall_check.warning_time_seconds",
                  "HVRUN_STALL_SECONDS", "%", ""},
    HorovodOption{"--stall-check-shutdown-time-seconds", "stall_check.shutdown_time_seconds",
                  "HVRUN_STALL_SHUTDOWN_SECONDS", "%", ""},
    HorovodOption{"--no-stall-check", "stall_check.enabled", "HVRUN_STALL_SECONDS", "0", "", true},
    HorovodOption{"--log-level", "logging.level", "HVRUN_LOG_LEVEL", "%", ""},
    HorovodOption{"--mpi-threads-disable", "library_options.mpi_threads_disable",
                  "HVRUN_MPI_THREADS_DISABLE", "1", ""},

    HorovodOption{"--cycle-time-ms", "params.cycle_time_ms", "HOROVOD_CYCLE_TIME", "%",
                  "There are no cycles: what is ready goes at once."},
    HorovodOption{"--timeline-mark-cycles", "timeline.mark_cycles", "HOROVOD_TIMELINE_MARK_CYCLES",
                  "", "There are no cycles to mark."},
    HorovodOption{"--hierarchical-allreduce", "params.hierarchical_allreduce",
                  "HOROVOD_HIERARCHICAL_ALLREDUCE", "", kHostsReduce},
    HorovodOption{"--no-hierarchical-allreduce", nullptr, nullptr, "", kHostsReduce, false,
                  "params.hierarchical_allreduce"},
    HorovodOption{"--hierarchical-allgather", "params.hierarchical_allgather",
                  "HOROVOD_HIERARCHICAL_ALLGATHER", "", kHostsGather},
    HorovodOption{"--no-hierarchical-allgather", nullptr, nullptr, "", kHostsGather, false,
                  "params.hierarchical_allgather"},
    HorovodOption{"", nullptr, "HOROVOD_TORUS_ALLREDUCE", "",
                  "Local ranks carry shares of large tensors anyway; see HVRUN_ALGORITHM."},
    HorovodOption{"", nullptr, "HOROVOD_BATCH_D2D_MEMCOPIES", "",
                  "Fused tensors are streamed: no buffer to copy them into."},
    HorovodOption{"", nullptr, "HOROVOD_DISABLE_GROUP_FUSION", "",
                  "A group completes as one, fused or not."},
    HorovodOption{"", nullptr, "HOROVOD_DYNAMIC_PROCESS_SETS", "",
                  "Process sets can always be added and removed."},
    HorovodOption{"", nullptr, "HOROVOD_CPU_OPERATIONS", "",
                  "HVRUN_BACKEND chooses who carries out collectives."},
    HorovodOption{"--autotune", "autotune.enabled", "HOROVOD_AUTOTUNE", "", kNoTuning},
    HorovodOption{"--autotune-log-file", "autotune.log_file", "HOROVOD_AUTOTUNE_LOG", "%",
                  kNoTuning},
    HorovodOption{"--autotune-warmup-samples", "autotune.warmup_samples", nullptr, "%", kNoTuning},
    HorovodOption{"--autotune-steps-per-sample", "autotune.steps_per_sample", nullptr, "%",
                  kNoTuning},
    HorovodOption{"--autotune-bayes-opt-max-samples", "autotune.bayes_opt_max_samples", nullptr,
                  "%", kNoTuning},
    HorovodOption{"--autotune-gaussian-process-noise", "autotune.gaussian_process_noise", nullptr,
                  "%", kNoTuning},
    HorovodOption{"--gloo", nullptr, "HOROVOD_CONTROLLER", "", kOwnController},
    HorovodOption{"--gloo-timeout-seconds", "library_options.gloo_timeout_seconds", nullptr, "%",
                  kOwnController},
    HorovodOption{"--num-nccl-streams", "library_options.num_nccl_streams", nullptr, "%", kNotYet},
    HorovodOption{"--ccl-bgt-affinity", "library_options.ccl_bgt_affinity", nullptr, "%", kNotYet},
    HorovodOption{"--log-with-timestamp", "logging.with_timestamp", "HOROVOD_LOG_TIMESTAMP", "",
                  kAlwaysTime},
    HorovodOption{"--log-hide-timestamp", "logging.hide_timestamp", "HOROVOD_LOG_HIDE_TIME", "",
                  kAlwaysTime},
    HorovodOption{"--log-without-timestamp", nullptr, nullptr, "", kAlwaysTime},
    HorovodOption{"--thread-affinity", nullptr, "HOROVOD_THREAD_AFFINITY", "%",
                  "hvrun binds ranks to cores, and their threads with them."},
    HorovodOption{"--disable-cache", nullptr, nullptr, "", "hvrun keeps no results of checks."},

    // Options that restore the default.
    HorovodOption{"--stall-check", nullptr, nullptr, "", "", false, "stall_check.enabled"},
    HorovodOption{"--no-autotune", nullptr, nullptr, "", "", false, "autotune.enabled"},
    HorovodOption{"--no-timeline-mark-cycles", nullptr, nullptr, "", "", false,
                  "timeline.mark_cycles"},
    HorovodOption{"--no-mpi-threads-disable", nullptr, "HVRUN_MPI_THREADS_DISABLE", "0", "", false,
                  "library_options.mpi_threads_disable"},
};

struct Refusal {
  const char* names;
  const char* instead;
};
constexpr std::array kRefusals{
    Refusal{"--jsrun", "inside LSF, hvrun reaches the hosts by SSH or by --rsh"},
    Refusal{"--binding-args", "see --bind-to and --rankfile"},
    Refusal{"--min-np,--min-num-proc,--max-np,--max-num-proc,--slots-per-host,--slots,"
            "--elastic-timeout,--reset-limit,--blacklist-cooldown-range,--host-discovery-script",
            "a job keeps its ranks: elastic jobs are not there yet"},
};

bool takes_value(const HorovodOption& row) { return row.value[0] == '%'; }

std::string first_name(const char* names) { return split(names, ',')[0]; }

std::optional<bool> yes_or_no(const std::string& text) {
  const std::string word = lower(text);
  if (word == "true" || word == "yes" || word == "on" || word == "1") return true;
  if (word == "false" || word == "no" || word == "off" || word == "0") return false;
  return std::nullopt;
}

// Throws Error(kUsage), with the origin, for a value that the knob refuses.
void check_variable(const std::string& name, const std::string& value, const std::string& origin) {
  Environment environment;
  environment.set(name, value);
  try {
    KnobReader(runtime_knobs(), environment).check_all();
  } catch (const Error& error) {
    throw Error(ErrorKind::kUsage, origin + ": " + error.what(), error.hint());
  }
}

struct Given {
  std::string value, origin;
};
using GivenRows = std::vector<std::optional<Given>>;

std::string no_effect(const std::string& origin, const std::string& reason) {
  return origin + " sets nothing: " + lower(reason.substr(0, 1)) +
         reason.substr(1, reason.size() - 2);
}

void add_settings(const GivenRows& given, HorovodSettings* settings) {
  for (std::size_t i = 0; i < kHorovodOptions.size(); ++i) {
    const HorovodOption& row = kHorovodOptions[i];
    if (!given[i]) continue;
    if (row.reason[0] != '\0') {
      settings->warnings.push_back(no_effect(given[i]->origin, row.reason));
      continue;
    }
    if (row.variable == nullptr) continue;
    const std::string unit = takes_value(row) ? row.value + 1 : "";
    if (!unit.empty() && !parse_integer(given[i]->value))
      throw Error(ErrorKind::kUsage,
                  given[i]->origin + " '" + printable(given[i]->value) + "' is no number of MiB",
                  "expected a whole number such as 64");
    const std::string value = takes_value(row) ? given[i]->value + unit : row.value;
    settings->variables.add_value(row.variable, value);
    check_variable(row.variable, value, given[i]->origin);
  }
}

[[noreturn]] void refuse_key(const ConfigSetting& setting) {
  std::vector<std::string> keys;
  for (const HorovodOption& row : kHorovodOptions)
    if (row.key != nullptr) keys.emplace_back(row.key);
  const auto guess = nearest(setting.key, keys);
  throw Error(ErrorKind::kUsage,
              setting.origin + ": '" + printable(setting.key) + "' is no setting of horovodrun's",
              guess ? "did you mean " + *guess + "?" : "hvrun(1) lists those that are known");
}

}  // namespace

std::vector<IgnoredVariable> ignored_horovod_variables() {
  std::vector<IgnoredVariable> ignored;
  for (const auto& row : kHorovodOptions)
    if (row.variable && row.reason[0] != '\0') ignored.push_back({row.variable, row.reason});
  return ignored;
}

HorovodOptions::HorovodOptions()
    : values_(kHorovodOptions.size()), flags_(kHorovodOptions.size()) {}

void HorovodOptions::add_to(CLI::App& app) {
  app.add_option("--config-file", config_file_, "horovodrun's settings in YAML")->group("");
  for (std::size_t i = 0; i < kHorovodOptions.size(); ++i) {
    if (kHorovodOptions[i].names[0] == '\0') continue;
    if (!takes_value(kHorovodOptions[i])) {
      app.add_flag(kHorovodOptions[i].names, flags_[i])->group("");
      continue;
    }
    CLI::Option* const option = app.add_option(kHorovodOptions[i].names, values_[i])->group("");
    if (kHorovodOptions[i].is_list)
      option->multi_option_policy(CLI::MultiOptionPolicy::Join)->delimiter(',');
  }
  for (const Refusal& refusal : kRefusals) {
    for (const std::string& name : split(refusal.names, ',')) {
      const auto refuse = [name, &refusal](const std::string&) {
        throw Error(ErrorKind::kUsage, name + " is horovodrun's, and not there in hvrun",
                    refusal.instead);
      };
      app.add_option_function<std::string>(name, refuse)->group("")->expected(0, 1);
    }
  }
}

HorovodSettings HorovodOptions::settings() const {
  if (config_file_.empty()) return settings("", "");
  return settings(read_horovod_config(config_file_), config_file_);
}

HorovodSettings HorovodOptions::settings(const std::string& config,
                                         const std::string& source) const {
  HorovodSettings settings;
  GivenRows in_file(kHorovodOptions.size()), typed(kHorovodOptions.size());
  for (const ConfigSetting& setting : parse_horovod_config(config, source)) {
    if (setting.key == "controller") {
      const char* const reason = lower(setting.value) == "mpi" ? kMpiIsAsked : kOwnController;
      settings.warnings.push_back(no_effect(setting.origin + ": controller", reason));
      continue;
    }
    const auto row = std::find_if(kHorovodOptions.begin(), kHorovodOptions.end(),
                                  [&setting](const HorovodOption& each) {
                                    return each.key != nullptr && setting.key == each.key;
                                  });
    if (row == kHorovodOptions.end()) refuse_key(setting);
    auto& place = in_file[static_cast<std::size_t>(row - kHorovodOptions.begin())];
    const std::string origin = setting.origin + ": " + setting.key;
    if (takes_value(*row)) {
      place = Given{setting.value, origin};
      continue;
    }
    const auto answer = yes_or_no(setting.value);
    if (!answer)
      throw Error(ErrorKind::kUsage,
                  setting.origin + ": " + setting.key + " '" + printable(setting.value) +
                      "' is neither yes nor no",
                  "expected true or false");
    if (*answer != row->is_inverted) place = Given{"", origin};
  }
  for (std::size_t i = 0; i < kHorovodOptions.size(); ++i) {
    if (values_[i].empty() && flags_[i] == 0) continue;
    typed[i] = Given{values_[i], first_name(kHorovodOptions[i].names)};
    in_file[i].reset();
    for (std::size_t other = 0; other < kHorovodOptions.size(); ++other)
      if (kHorovodOptions[other].key != nullptr &&
          std::string(kHorovodOptions[i].cancels) == kHorovodOptions[other].key)
        in_file[other].reset();
  }
  add_settings(in_file, &settings);
  add_settings(typed, &settings);  // later: the command line beats the file
  return settings;
}

}  // namespace hv::launcher
