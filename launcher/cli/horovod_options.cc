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

struct Row {
  const char* names;         // as CLI11 has them
  const char* key;           // in the file; nullptr: none
  const char* variable;      // that ranks read; nullptr: nothing to set here
  const char* value;         // "%": what is given, "%M"; else it is a flag that sets this
  const char* why;           // nothing is set
  bool is_inverted = false;  // the file says it by a no
  const char* cancels = "";  // what the file may say under this key
  bool is_list = false;      // given again it adds to what was given, as there
};

constexpr const char* kNoCycles = "there are no cycles: what is ready goes at once";
constexpr const char* kHostsFirst = "hosts work inside first, whenever there are several";
constexpr const char* kNoTuning = "nothing is tuned while the job runs";
constexpr const char* kOwnWays = "ranks meet through hvrun and talk by its own ways";
constexpr const char* kMpiIsAsked = "--mpi has MPI start the ranks";
constexpr const char* kAlwaysTime = "lines of the log always have their time";
constexpr const char* kBound = "hvrun binds ranks to cores, and their threads with them";
constexpr const char* kNoCache = "hvrun keeps no results of checks";
constexpr const char* kNotYet = "no backend reads it";

// Of one source later rows beat earlier ones that set the same.
constexpr std::array kRows{
    Row{"--network-interfaces,--network-interface", nullptr, "HVRUN_INTERFACES", "%", "", false, "",
        true},
    Row{"--tcp", nullptr, "NCCL_IB_DISABLE", "1", ""},
    Row{"--fusion-threshold-mb", "params.fusion_threshold_mb", "HVRUN_FUSION_THRESHOLD", "%M", ""},
    Row{"--cache-capacity", "params.cache_capacity", "HVRUN_CACHE_CAPACITY", "%", ""},
    Row{"--timeline-filename", "timeline.filename", "HVRUN_TIMELINE", "%", ""},
    Row{"--stall-check-warning-time-seconds", "stall_check.warning_time_seconds",
        "HVRUN_STALL_SECONDS", "%", ""},
    Row{"--stall-check-shutdown-time-seconds", "stall_check.shutdown_time_seconds",
        "HVRUN_STALL_SHUTDOWN_SECONDS", "%", ""},
    Row{"--no-stall-check", "stall_check.enabled", "HVRUN_STALL_SECONDS", "0", "", true},
    Row{"--log-level", "logging.level", "HVRUN_LOG_LEVEL", "%", ""},
    Row{"--mpi-threads-disable", "library_options.mpi_threads_disable", "HVRUN_MPI_THREADS_DISABLE",
        "1", ""},

    Row{"--cycle-time-ms", "params.cycle_time_ms", nullptr, "%", kNoCycles},
    Row{"--timeline-mark-cycles", "timeline.mark_cycles", nullptr, "", kNoCycles},
    Row{"--hierarchical-allreduce", "params.hierarchical_allreduce", nullptr, "", kHostsFirst},
    Row{"--no-hierarchical-allreduce", nullptr, nullptr, "", kHostsFirst, false,
        "params.hierarchical_allreduce"},
    Row{"--hierarchical-allgather", "params.hierarchical_allgather", nullptr, "", kHostsFirst},
    Row{"--no-hierarchical-allgather", nullptr, nullptr, "", kHostsFirst, false,
        "params.hierarchical_allgather"},
    Row{"--autotune", "autotune.enabled", nullptr, "", kNoTuning},
    Row{"--autotune-log-file", "autotune.log_file", nullptr, "%", kNoTuning},
    Row{"--autotune-warmup-samples", "autotune.warmup_samples", nullptr, "%", kNoTuning},
    Row{"--autotune-steps-per-sample", "autotune.steps_per_sample", nullptr, "%", kNoTuning},
    Row{"--autotune-bayes-opt-max-samples", "autotune.bayes_opt_max_samples", nullptr, "%",
        kNoTuning},
    Row{"--autotune-gaussian-process-noise", "autotune.gaussian_process_noise", nullptr, "%",
        kNoTuning},
    Row{"--gloo", nullptr, nullptr, "", kOwnWays},
    Row{"--gloo-timeout-seconds", "library_options.gloo_timeout_seconds", nullptr, "%", kOwnWays},
    Row{"--num-nccl-streams", "library_options.num_nccl_streams", nullptr, "%", kNotYet},
    Row{"--ccl-bgt-affinity", "library_options.ccl_bgt_affinity", nullptr, "%", kNotYet},
    Row{"--log-with-timestamp", "logging.with_timestamp", nullptr, "", kAlwaysTime},
    Row{"--log-hide-timestamp", "logging.hide_timestamp", nullptr, "", kAlwaysTime},
    Row{"--log-without-timestamp", nullptr, nullptr, "", kAlwaysTime},
    Row{"--thread-affinity", nullptr, nullptr, "%", kBound},
    Row{"--disable-cache", nullptr, nullptr, "", kNoCache},

    // What holds anyway.
    Row{"--stall-check", nullptr, nullptr, "", "", false, "stall_check.enabled"},
    Row{"--no-autotune", nullptr, nullptr, "", "", false, "autotune.enabled"},
    Row{"--no-timeline-mark-cycles", nullptr, nullptr, "", "", false, "timeline.mark_cycles"},
    Row{"--no-mpi-threads-disable", nullptr, "HVRUN_MPI_THREADS_DISABLE", "0", "", false,
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

bool takes_value(const Row& row) { return row.value[0] == '%'; }

std::string first_name(const char* names) { return split(names, ',')[0]; }

std::optional<bool> yes_or_no(const std::string& text) {
  const std::string word = lower(text);
  if (word == "true" || word == "yes" || word == "on" || word == "1") return true;
  if (word == "false" || word == "no" || word == "off" || word == "0") return false;
  return std::nullopt;
}

// The knob's own check, told with who has set it.
void check_variable(const std::string& entry, const std::string& origin) {
  const auto environment = Environment::from_entries({entry});
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

void add_rows(const GivenRows& given, HorovodSettings* settings) {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    const Row& row = kRows[i];
    if (!given[i]) continue;
    if (row.variable == nullptr) {
      if (row.why[0] != '\0')
        settings->warnings.push_back(given[i]->origin + " sets nothing: " + row.why);
      continue;
    }
    const std::string unit = takes_value(row) ? row.value + 1 : "";
    if (!unit.empty() && !parse_integer(given[i]->value))
      throw Error(ErrorKind::kUsage,
                  given[i]->origin + " '" + printable(given[i]->value) + "' is no number of MiB",
                  "expected a whole number such as 64");
    settings->variables.push_back(std::string(row.variable) + "=" +
                                  (takes_value(row) ? given[i]->value + unit : row.value));
    check_variable(settings->variables.back(), given[i]->origin);
  }
}

[[noreturn]] void refuse_key(const ConfigSetting& setting) {
  std::vector<std::string> keys;
  for (const Row& row : kRows)
    if (row.key != nullptr) keys.emplace_back(row.key);
  const auto guess = nearest(setting.key, keys);
  throw Error(ErrorKind::kUsage,
              setting.origin + ": '" + printable(setting.key) + "' is no setting of horovodrun's",
              guess ? "did you mean " + *guess + "?" : "hvrun(1) lists those that are known");
}

}  // namespace

HorovodOptions::HorovodOptions() : values_(kRows.size()), flags_(kRows.size()) {}

void HorovodOptions::add_to(CLI::App& app) {
  app.add_option("--config-file", config_file_, "horovodrun's settings in YAML")->group("");
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (!takes_value(kRows[i])) {
      app.add_flag(kRows[i].names, flags_[i])->group("");
      continue;
    }
    CLI::Option* const option = app.add_option(kRows[i].names, values_[i])->group("");
    if (kRows[i].is_list) option->multi_option_policy(CLI::MultiOptionPolicy::Join)->delimiter(',');
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
  GivenRows in_file(kRows.size()), typed(kRows.size());
  for (const ConfigSetting& setting : parse_horovod_config(config, source)) {
    if (setting.key == "controller") {
      settings.warnings.push_back(setting.origin + ": controller sets nothing: " +
                                  (lower(setting.value) == "mpi" ? kMpiIsAsked : kOwnWays));
      continue;
    }
    const auto row = std::find_if(kRows.begin(), kRows.end(), [&setting](const Row& each) {
      return each.key != nullptr && setting.key == each.key;
    });
    if (row == kRows.end()) refuse_key(setting);
    auto& place = in_file[static_cast<std::size_t>(row - kRows.begin())];
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
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (values_[i].empty() && flags_[i] == 0) continue;
    typed[i] = Given{values_[i], first_name(kRows[i].names)};
    in_file[i].reset();
    for (std::size_t other = 0; other < kRows.size(); ++other)
      if (kRows[other].key != nullptr && std::string(kRows[i].cancels) == kRows[other].key)
        in_file[other].reset();
  }
  add_rows(in_file, &settings);
  add_rows(typed, &settings);  // later entries of an environment win
  return settings;
}

}  // namespace hv::launcher
