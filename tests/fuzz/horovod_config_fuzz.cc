// The YAML of horovodrun's --config-file.
// SPDX-License-Identifier: Apache-2.0

#include "launcher/cli/horovod_options.h"
#include "src/base/error.h"
#include "tests/fuzz/fuzz.h"

using namespace hv;
using namespace hv::launcher;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(fuzz::view(data, size));
  try {
    const HorovodSettings settings = HorovodOptions().settings(text, "conf.yaml");
    for (const Export& variable : settings.variables.list()) {
      HV_CHECK(variable.form == Export::Form::kValue, "a variable with its value");
      HV_CHECK((variable.name + variable.value).find('\0') == std::string::npos,
               "an entry of an environment");
    }
  } catch (const Error& error) {
    HV_CHECK(error.kind() == ErrorKind::kUsage, "a mistake of the file");
    HV_CHECK(!error.hint().empty(), "what to try");
  }
  return 0;
}
