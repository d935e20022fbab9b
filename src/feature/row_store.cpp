// A fetch on the CPU.
#include "row_store.inl.hpp"

#include <algorithm>

namespace espalier {

void concatenate(const Cpu&, IdLists lists, std::int64_t* all) {
  for (const auto& list : lists) all = std::copy(list.begin(), list.end(), all);
}

template <class Id>
void find_sources(const Cpu&, const OwnerGroups<Id>& groups, std::int64_t others, std::int64_t first_row,
                  std::int64_t* source) {
  for (std::int64_t j = 0; j < others; ++j) source[groups.order[j]] = j;
  for (std::int64_t j = others; j < groups.size(); ++j)
    source[groups.order[j]] = ~(groups.ids[j] - first_row);
}

template <class Id>
void count_changed(const Cpu&, const Id* asked, std::int64_t count, std::int64_t first,
                   const Buffer<std::int32_t>& changed, std::int32_t version, Buffer<std::int64_t>& before) {
  before.resize(static_cast<std::size_t>(count) + 1);
  before[0] = 0;
  for (std::int64_t k = 0; k < count; ++k) before[k + 1] = before[k] + (changed[asked[k] - first] > version);
}

template <class Id>
void take_changed(const Cpu&, const Id* asked, std::int64_t count, const std::int64_t* before, Id* numbers,
                  Id* rows) {
  for (std::int64_t k = 0; k < count; ++k) {
    if (before[k + 1] == before[k]) continue;
    *numbers++ = static_cast<Id>(k);
    *rows++ = asked[k];
  }
}

template <class Id>
void put_rows(const Cpu&, ConstMatrixView<float> from, const Id* places, MatrixView<float> to) {
  for (std::int64_t k = 0; k < from.rows; ++k) std::copy_n(from.row(k), from.columns, to.row(places[k]));
}

void mark_changed(const Cpu&, const Buffer<std::int64_t>& places, std::int32_t version,
                  Buffer<std::int32_t>& changed) {
  for (const auto place : places) changed[place] = version;
}

template void put_rows(const Cpu&, ConstMatrixView<float>, const std::int32_t*, MatrixView<float>);
template void put_rows(const Cpu&, ConstMatrixView<float>, const std::int64_t*, MatrixView<float>);
template class RowStoreOn<Cpu>;

}  // namespace espalier
