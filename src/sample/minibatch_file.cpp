#include "espalier/sample/minibatch_file.hpp"

#include <zlib.h>

#include <array>
#include <bit>
#include <cstring>

#include "espalier/base/error.hpp"
#include "espalier/sample/link_examples.hpp"

namespace espalier {

namespace {

static_assert(std::endian::native == std::endian::little, "records are written as they lie in memory");

constexpr std::int64_t kAtOnce = std::int64_t{4} << 20;  // bytes, that a write is worth its while
constexpr std::size_t kAlignment = 8, kUnhashed = 16;

template <class T>
std::span<const T> array_of(const T* from, std::int64_t count) {
  return {from, static_cast<std::size_t>(count)};
}

// Where rows begin, counted from the block's first entry.
std::vector<std::int64_t> row_starts(const BlockView<>& block) {
  std::vector<std::int64_t> starts(block.indptr, block.indptr + block.rows + 1);
  const auto first = starts[0];
  for (auto& start : starts) start -= first;
  return starts;
}

}  // namespace

void MinibatchFile::append(std::int64_t epoch, const Minibatch& minibatch, const SeedLabels& labels) {
  const auto begin = std::ssize(waiting_);
  index_.push_back({epoch, minibatch.number, written_ + begin});
  const auto columns = labels.links != nullptr ? -2 : labels.classes.empty() ? labels.columns : -1;
  put<std::int64_t>(
      std::array<std::int64_t, 6>{0, 0, epoch, minibatch.number, std::ssize(minibatch.blocks), columns});
  for (const auto& block : minibatch.blocks)
    put<std::int64_t>(std::array<std::int64_t, 4>{block.rows, block.columns, block.entries(),
                                                  block.has_relations() ? 1 : 0});
  put(minibatch.vertices);
  for (const auto& block : minibatch.blocks) {
    ESPALIER_CHECK(block.has_values(), "a block of batch {}", minibatch.number);
    put<std::int64_t>(row_starts(block));
    put(array_of(block.indices + block.indptr[0], block.entries()));
    put(array_of<float>(block.values + block.indptr[0], block.entries()));
    if (block.has_relations())
      put(array_of<std::uint8_t>(block.relations + block.indptr[0], block.entries()));
  }
  put(labels.classes);
  put(labels.several);
  if (labels.links != nullptr) put_links(*labels.links);
  seal(begin);
  if (std::ssize(waiting_) >= kAtOnce) flush();
}

void MinibatchFile::finish() {
  for (const auto& place : index_)
    put<std::int64_t>(std::array<std::int64_t, 3>{place.epoch, place.batch, place.begin});
  flush();
  file_.sync();
}

template <class T>
void MinibatchFile::put(std::span<const T> values) {
  const auto from = waiting_.size(), bytes = values.size_bytes();
  waiting_.resize(from + (bytes + kAlignment - 1) / kAlignment * kAlignment, 0);
  if (bytes > 0) std::memcpy(waiting_.data() + from, values.data(), bytes);
}

void MinibatchFile::put_links(const LinkBatch& links) {
  const auto count = links.links();
  const auto negatives = count == 0 ? 0 : std::ssize(links.negative_heads) / count;
  put<std::int64_t>(std::array<std::int64_t, 2>{count, negatives});
  for (const auto* list :
       {&links.heads, &links.tails, &links.relations, &links.negative_heads, &links.negative_tails})
    put(std::span<const std::int32_t>(*list));
}

// The length and checksum of the record that begins there and is whole.
void MinibatchFile::seal(std::int64_t begin) {
  auto* const record = waiting_.data() + begin;
  const auto size = waiting_.size() - static_cast<std::size_t>(begin);
  const auto crc =
      crc32_z(crc32_z(0, nullptr, 0), reinterpret_cast<const Bytef*>(record) + kUnhashed, size - kUnhashed);
  const std::array<std::int64_t, 2> head = {static_cast<std::int64_t>(size), static_cast<std::int64_t>(crc)};
  std::memcpy(record, head.data(), kUnhashed);
}

void MinibatchFile::flush() {
  file_.write(written_, waiting_.data(), std::ssize(waiting_));
  written_ += std::ssize(waiting_);
  waiting_.clear();
}

}  // namespace espalier
