#include "espalier/product/product.hpp"

#include "schedules.hpp"

namespace espalier {

template <class Index>
std::unique_ptr<Product<Index>> open_product(const Cpu& cpu, const StackedFrontier& q,
                                             const DistCsr<Index>& a, Schedule schedule,
                                             std::string_view label) {
  const std::string name(label);
  if (a.partition.parts() == 1) return pull(cpu, q, a, name);
  switch (schedule) {
    case Schedule::kPull:
      return pull(cpu, q, a, name);
    case Schedule::kPush:
      return push(cpu, q, a, name);
    case Schedule::kStaged:
    case Schedule::kStagedOblivious:
      return staged(cpu, q, a, schedule == Schedule::kStagedOblivious, name);
    case Schedule::kAuto:
      break;
  }
  ESPALIER_CHECK(false, "a product needs a schedule, not {}", name_of(schedule));
  return nullptr;
}

template std::unique_ptr<Product<std::int32_t>> open_product(const Cpu&, const StackedFrontier&,
                                                             const DistCsr<std::int32_t>&, Schedule,
                                                             std::string_view);
template std::unique_ptr<Product<std::int64_t>> open_product(const Cpu&, const StackedFrontier&,
                                                             const DistCsr<std::int64_t>&, Schedule,
                                                             std::string_view);

}  // namespace espalier
