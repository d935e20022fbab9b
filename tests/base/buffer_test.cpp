// Laws: every allocation of a Buffer is counted, once (other tests show by this count that nothing
// was allocated); its memory begins at a cache line, from kHugeBufferBytes on at a huge page; what
// was freed is used again.
#include "espalier/base/buffer.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <vector>

#include "espalier/base/process.hpp"

namespace espalier {
namespace {

TEST(Buffer, EveryAllocationIsCounted) {
  const auto before = buffer_allocations();
  Buffer<float> buffer(10);
  EXPECT_EQ(buffer_allocations(), before + 1);
  buffer.resize(buffer.capacity() + 1);
  EXPECT_EQ(buffer_allocations(), before + 2);
  buffer.clear();
  buffer.resize(3);
  EXPECT_EQ(buffer_allocations(), before + 2) << "it had the memory";
}

TEST(Buffer, BeginsAtACacheLineOrAHugePage) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{65}, kHugeBufferBytes - 1, kHugeBufferBytes}) {
    const Buffer<char> first(bytes), second(bytes);
    for (const auto* buffer : {&first, &second})
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->data()) %
                    (bytes < kHugeBufferBytes ? 64 : std::size_t{2} << 20),
                0u)
          << bytes << " bytes";
  }
}

// What tells a user that memory is out asks for that.
TEST(Buffer, TheNewHandlerIsCalledWhereThereIsNoMemory) {
  struct Called {};
  const auto before = std::set_new_handler([] { throw Called(); });
  for (const std::size_t bytes : {std::size_t{1} << 62, std::size_t{1} << 46})
    EXPECT_THROW(allocate_buffer(bytes), Called) << bytes;
  std::set_new_handler(nullptr);
  EXPECT_THROW(allocate_buffer(std::size_t{1} << 62), std::bad_alloc);
  std::set_new_handler(before);
}

// As a file is read piece by piece, while a library keeps a little of each.
TEST(Buffer, MemoryThatWasFreedIsUsedAgain) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer keeps what was freed, to see who uses it";
#endif
  keep_freed_memory();
  std::vector<std::unique_ptr<char[]>> kept;
  const auto before = process_memory("VmRSS");
  for (const std::size_t bytes : {kHugeBufferBytes - 100000, kHugeBufferBytes + 100000})
    for (int piece = 0; piece < 40; ++piece) {
      Buffer<char> rows(bytes, 'x');
      kept.push_back(std::make_unique<char[]>(200));
      const Buffer<char> read(bytes, 'y');
      kept.push_back(std::make_unique<char[]>(200));
      rows = read;
    }
  EXPECT_LT(process_memory("VmRSS") - before, 8 * static_cast<std::int64_t>(kHugeBufferBytes));
}

}  // namespace
}  // namespace espalier
