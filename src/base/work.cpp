#include "espalier/base/work.hpp"

#include "espalier/base/clock.hpp"

namespace espalier {

namespace {
std::optional<WorkRates>& installed() {
  static std::optional<WorkRates> rates;
  return rates;
}
}  // namespace

void set_work_rates(const std::optional<WorkRates>& rates) {
  installed() = rates;
}

void charge(const Work& work) {
  const auto& rates = installed();
  if (!rates) return;
  charge(work.gathers / rates->gathers_per_second + work.bytes / rates->bytes_per_second +
         work.launches * rates->seconds_per_launch);
}

}  // namespace espalier
