// SPDX-License-Identifier: Apache-2.0
#include "launcher/cli/option_parsing.h"

#include <optional>

#include "src/base/error.h"

namespace hv::launcher {
namespace {

// What is wrong with an option that takes one value and has several.
std::optional<std::string> repeated_option(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() == 1 && option->count() > 1)
      return option->get_name(false, true) + " is given " + std::to_string(option->count()) +
             " times";
  }
  return std::nullopt;
}

}  // namespace

std::vector<OptionShape> shapes_of(const CLI::App& app) {
  std::vector<OptionShape> shapes;
  for (const CLI::Option* option : app.get_options()) {
    OptionShape shape;
    for (const std::string& name : option->get_snames()) shape.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) shape.names.push_back("--" + name);
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
  } catch (const CLI::Error& error) {
    throw Error(ErrorKind::kUsage, error.what(), help);
  }
}

void refuse_empty_values(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_min() == 0) continue;
    for (const std::string& value : option->results()) {
      if (!value.empty()) continue;
      throw Error(ErrorKind::kUsage, option->get_name(false, true) + " has an empty value",
                  "give it one, or leave the option out; is a shell variable unset?");
    }
  }
}

}  // namespace hv::launcher
