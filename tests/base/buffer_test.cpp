// Laws: every allocation of a Buffer is counted, once (other tests show by this count that nothing
// was allocated); its memory begins at a cache line, from kHugeBufferBytes on at a huge page.
#include "espalier/base/buffer.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace espalier
