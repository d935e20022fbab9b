#include "mapped_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>

namespace espalier {

namespace {

std::size_t in_whole_pages(std::size_t bytes) {
  return (bytes + kHugePage - 1) / kHugePage * kHugePage;
}

// New pages, at a huge page: a place larger by one is cut to it. Null: there are none.
std::byte* map(std::size_t bytes) {
  void* const place =
      mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED) return nullptr;
  auto* const whole = static_cast<std::byte*>(place);
  const auto before = (kHugePage - reinterpret_cast<std::uintptr_t>(whole) % kHugePage) % kHugePage;
  if (before > 0) munmap(whole, before);
  munmap(whole + before + bytes, kHugePage - before);
  madvise(whole + before, bytes, MADV_HUGEPAGE);  // a refusal costs speed alone
  return whole + before;
}

}  // namespace

// The smallest that suffices, cut; or the largest, continued by new pages.
std::byte* MappedMemory::take_kept(std::size_t bytes) {
  if (kept_.empty()) return nullptr;
  auto block = kept_.end();
  for (auto b = kept_.begin(); b != kept_.end(); ++b)
    if (b->bytes >= bytes && (block == kept_.end() || b->bytes < block->bytes)) block = b;
  if (block != kept_.end()) {
    auto* const begin = block->begin;
    kept_bytes_ -= bytes;
    if (block->bytes == bytes) {
      kept_.erase(block);
    } else {
      block->begin += bytes;
      block->bytes -= bytes;
    }
    return begin;
  }
  block = std::ranges::max_element(kept_, {}, &Block::bytes);
  auto* const place = map(bytes);
  if (place == nullptr) return nullptr;
  if (mremap(block->begin, block->bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, place) == MAP_FAILED) {
    // The system may have taken the place already, and given it to another thread: it is left.
    return nullptr;
  }
  kept_bytes_ -= block->bytes;
  kept_.erase(block);
  return place;
}

void MappedMemory::keep_at_most(std::size_t bytes) {
  while (kept_bytes_ > bytes) {
    auto& last = kept_.back();
    const auto excess = std::min(kept_bytes_ - bytes, last.bytes);
    last.bytes -= excess;
    munmap(last.begin + last.bytes, excess);
    kept_bytes_ -= excess;
    if (last.bytes == 0) kept_.pop_back();
  }
}

void* MappedMemory::allocate(std::size_t bytes) {
  bytes = in_whole_pages(bytes);
  const std::scoped_lock lock(mutex_);
  auto* memory = take_kept(bytes);
  const auto most_before = most_in_use_;
  in_use_ += bytes;
  most_in_use_ = std::max(most_in_use_, in_use_);
  keep_at_most(most_in_use_ - in_use_);
  if (memory == nullptr) memory = map(bytes);
  if (memory == nullptr) {
    keep_at_most(0);
    memory = map(bytes);
  }
  if (memory == nullptr) {
    in_use_ -= bytes;
    most_in_use_ = most_before;
  }
  return memory;
}

void MappedMemory::free(void* memory, std::size_t bytes) noexcept {
  bytes = in_whole_pages(bytes);
  const std::scoped_lock lock(mutex_);
  in_use_ -= bytes;
  if (!keeps_) {
    munmap(memory, bytes);
    return;
  }
  try {
    kept_.push_back({static_cast<std::byte*>(memory), bytes});
    kept_bytes_ += bytes;
  } catch (const std::bad_alloc&) {
    munmap(memory, bytes);
  }
}

void MappedMemory::keep(bool keep) {
  const std::scoped_lock lock(mutex_);
  keeps_ = keep;
}

void MappedMemory::give_back() {
  const std::scoped_lock lock(mutex_);
  keep_at_most(0);
  most_in_use_ = in_use_;
}

}  // namespace espalier
