// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/explain_command.h"

#include <CLI/CLI.hpp>
#include <filesystem>

#include "launcher/cli/option_parsing.h"
#include "launcher/commands/commands.h"
#include "launcher/record/explain.h"
#include "launcher/record/job_folder.h"
#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr const char* kHelpText =
    "hvrun explain: why a job ended as it did, from its output folder\n\n"
    "Usage: hvrun explain [--format text|json] DIR\n"
    "  DIR  what --output-dir was given; folders of other launchers with rank.N/stderr\n"
    "       or N/stderr.log are read, too\n"
    "  --format FORMAT  text or json (default: text)\n"
    "  -h,--help        this text\n"
    "\nMore: man hvrun-explain\n";

// Throws Error(kUsage) for a directory without a job's files.
int explain(const ExplainCommand& command) {
  // The path of a record stands for its directory.
  const std::filesystem::path path = command.folder;
  std::error_code unknown;
  const bool is_record =
      path.filename() == kRecordFile && std::filesystem::is_regular_file(path, unknown);
  const std::string parent = path.parent_path();
  const JobFolder folder =
      read_job_folder(!is_record ? command.folder : (parent.empty() ? "." : parent));
  return command.as_json ? print_text(explanation_as_json(folder))
                         : print_report(explanation_as_text(folder));
}

}  // namespace

std::variant<ExplainCommand, PrintCommand> parse_explain_command(
    const std::vector<std::string>& words) {
  CLI::App app;
  app.set_help_flag();
  bool help = false;
  std::string format = "text";
  std::vector<std::string> folders;
  app.add_flag("-h,--help", help, "this text");
  app.add_option("--format", format, "text or json");
  app.add_option("DIR", folders, "the job's output folder");
  parse_options(app, words, "'hvrun explain --help' lists the options");
  if (help) return PrintCommand{kHelpText};
  if (format != "text" && format != "json")
    throw Error(ErrorKind::kUsage, "--format '" + printable(format) + "' is not understood",
                "expected text or json");
  if (folders.size() != 1)
    throw Error(ErrorKind::kUsage,
                folders.empty() ? "'hvrun explain' wants a job's output folder"
                                : "'hvrun explain' takes one folder, and these are several: " +
                                      printable(join(folders, " ")),
                "hvrun explain DIR, of a job that was started with --output-dir DIR; to run a "
                "program called explain: hvrun -- explain");
  return ExplainCommand{folders.front(), format == "json"};
}

int run_explain(const std::vector<std::string>& words, const Environment&) {
  const auto command = parse_explain_command(words);
  if (const auto* text = std::get_if<PrintCommand>(&command)) return print_text(text->text);
  return explain(std::get<ExplainCommand>(command));
}

}  // namespace hv::launcher
