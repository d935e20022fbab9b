#include "espalier/partition/held_types.hpp"

#include <algorithm>
#include <memory>

namespace espalier {

HeldTypes::HeldTypes(const Schema& schema, const std::vector<bool>& held) {
  if (std::ranges::all_of(held, [](bool one) { return one; })) return;
  for (std::size_t t = 0; t < held.size(); ++t) {
    const auto& type = schema.types()[t];
    types_.push_back({type.begin, type.end, type.begin - count_, held[t]});
    if (held[t]) count_ += type.size();
  }
}

int HeldTypes::type_of(std::int64_t vertex) const {
  return static_cast<int>(std::ranges::upper_bound(types_, vertex, {}, &Type::end) - types_.begin());
}

std::int64_t HeldTypes::vertex(std::int64_t number) const {
  if (all()) return number;
  return number + std::ranges::find_if(types_, [=](const Type& type) {
                    return type.held && number < type.end - type.shift;
                  })->shift;
}

Ownership HeldTypes::owners(const Ownership& vertices) const {
  if (all()) return vertices;
  if (vertices.parts() == 1) return block_partition(count_, 1);
  auto type = types_.begin();
  return Ownership(std::make_shared<const OwnerMap>(count_, vertices.parts(), [&](std::int64_t number) {
    while (!type->held || number + type->shift >= type->end) ++type;
    return vertices.owner(number + type->shift);
  }));
}

}  // namespace espalier
