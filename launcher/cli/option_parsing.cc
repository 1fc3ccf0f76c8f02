// SPDX-License-Identifier: Apache-2.0
#include "launcher/cli/option_parsing.h"

#include <optional>

#include "launcher/cli/option_values.h"
#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

// All names of an option. CLI11's get_name() is empty for an option that --help does not list.
std::string name_of(const CLI::Option& option) {
  const std::vector<std::string> names = names_of(option);
  return names.empty() ? option.get_name(true) : join(names, ",");
}

// The error about an option that takes one value and is given several times.
std::optional<std::string> repeated_option(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() == 1 && option->count() > 1)
      return name_of(*option) + " is given " + std::to_string(option->count()) + " times";
  }
  return std::nullopt;
}

// The error about a flag that is given a value, such as "--timestamp=utc".
std::optional<std::string> flag_with_value(const CLI::App& app,
                                           const std::vector<std::string>& words) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() > 0) continue;
    for (const std::string& name : names_of(*option))
      for (const std::string& word : words)
        if (word.starts_with(name + "="))
          return name + " takes no value, and has '" + printable(word.substr(name.size() + 1)) +
                 "'";
  }
  return std::nullopt;
}

}  // namespace

std::vector<OptionShape> shapes_of(const CLI::App& app) {
  std::vector<OptionShape> shapes;
  for (const CLI::Option* option : app.get_options()) {
    OptionShape shape;
    shape.names = names_of(*option);
    shape.takes_value = option->get_items_expected_min() > 0;
    shapes.push_back(shape);
  }
  return shapes;
}

void parse_options(CLI::App& app, const std::vector<std::string>& words, const std::string& help) {
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ArgumentMismatch& error) {
    throw Error(ErrorKind::kUsage, repeated_option(app).value_or(error.what()), help);
  } catch (const CLI::ConversionError& error) {
    throw Error(ErrorKind::kUsage, flag_with_value(app, words).value_or(error.what()), help);
  } catch (const CLI::Error& error) {
    throw Error(ErrorKind::kUsage, error.what(), help);
  }
}

void refuse_empty_values(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_min() == 0) continue;
    for (const std::string& value : option->results()) {
      if (value.empty()) refuse_empty_value(name_of(*option));
    }
  }
}

}  // namespace hv::launcher
