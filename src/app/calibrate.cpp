#include "commands.hpp"
#include "espalier/base/error.hpp"
namespace espalier {
void calibrate_command(const Communicator&, const CalibrateArguments&) {
  usage_error("not yet{}", "");
}
}  // namespace espalier
