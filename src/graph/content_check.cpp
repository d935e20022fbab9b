#include "content_check.hpp"

namespace espalier {

namespace {
struct Part {
  std::int64_t begin, end;
  std::uint64_t share;
};
}  // namespace

bool ContentCheck::add(const Communicator& comm, std::int64_t begin, std::int64_t end, std::uint64_t share) {
  if (found_) return true;
  for (const auto& part : comm.all_gather(Part{begin, end, share}, "graph file"))
    if (part.begin < part.end && parts_.insert({{part.begin, part.end}, part.share}).second)
      covered_ += part.end - part.begin;
  if (covered_ >= entries_) find();
  return !found_ || !stated_ || *found_ == *stated_;
}

// Follows parts that touch from the first entry to the last.
void ContentCheck::find() {
  std::uint64_t sum = 0;
  std::int64_t place = 0;
  while (place < entries_) {
    const auto next = parts_.lower_bound({place, 0});
    if (next == parts_.end() || next->first.first != place) return;
    sum += next->second;
    place = next->first.second;
  }
  found_ = sum;
  parts_.clear();
}

}  // namespace espalier
