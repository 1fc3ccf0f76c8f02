// SPDX-License-Identifier: Apache-2.0
#include "launcher/check/probe_list.h"

namespace hv::launcher {

const std::vector<const Probe*>& all_probes() {
  static const std::vector<const Probe*> probes{
      &kReachProbe,     &kPlacementProbe, &kClockProbe,  &kAddressProbe,  &kNetworkProbe,
      &kWaysProbe,      &kPortProbe,      &kNamesProbe,  &kFolderProbe,   &kProgramProbe,
      &kPythonProbe,    &kLimitProbe,     &kMemoryProbe, &kLoadProbe,     &kGpusProbe,
      &kGpuDriverProbe, &kGpuHealthProbe, &kGpuUseProbe, &kGpuLinksProbe, &kNcclProbe};
  return probes;
}

}  // namespace hv::launcher
