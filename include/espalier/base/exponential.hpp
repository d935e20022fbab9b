// Exponential deviates in integers: E = -log2(U), the same bits on every processor, GPUs too.
//
//     U = x / 2^64         x = word | 1 = 2^(63 - z) m, 1 <= m < 2, z zeros before its first one
//     E = z + 1 - log2 m   m = (1 + i / 256) (1 + r), i the eight bits after that one
//
// with a table of log2(1 + i / 256) and seven terms of the series of log2(1 + r), r < 2^-8. E never
// ascends with x: within an i both r and the sum of the series rise by far more than roundings, and
// tests go over all borders between them.
#pragma once

#include <cstdint>

#include "espalier/base/philox.hpp"

namespace espalier {

/// 1 / (1 + i / 256) and log2(1 + i / 256), of 2^64.
struct BinaryLogs {
  std::uint64_t inverse[256], log2[256];
};

/// From integers alone: log2 c is the quotient of two series of atanh((c - 1) / (c + 1)).
ESPALIER_HD constexpr BinaryLogs make_binary_logs() {
  __extension__ using Wide = unsigned __int128;
  const auto atanh = [](std::uint64_t i) {  // for c = 1 + i / 256, of 2^100
    const std::uint64_t over = 512 + i;
    Wide sum = 0, term = (Wide{i} << 100) / over;
    for (std::uint64_t n = 1; term > 0; n += 2, term = term * (i * i) / (over * over)) sum += term / n;
    return sum;
  };
  BinaryLogs logs = {};
  const auto of_two = atanh(256);
  for (std::uint64_t i = 0; i < 256; ++i) {
    logs.inverse[i] = i == 0 ? ~std::uint64_t{0} : static_cast<std::uint64_t>((Wide{256} << 64) / (256 + i));
    auto rest = atanh(i);
    for (int bit = 0; bit < 64; ++bit) {
      rest *= 2;
      logs.log2[i] = 2 * logs.log2[i] + (rest >= of_two);
      rest -= rest >= of_two ? of_two : 0;
    }
  }
  return logs;
}

/// Zeros before the first one of x > 0.
ESPALIER_HD inline int leading_zeros(std::uint64_t x) {
#if defined(__CUDA_ARCH__)
  return __clzll(static_cast<long long>(x));
#else
  return __builtin_clzll(x);
#endif
}

/// E of a random word, times 2^57: from 2 to 2^63 + 1, 0.99 to 2.02 above -log2(U).
/// It does not ascend with the word.
ESPALIER_HD inline std::uint64_t exponential(std::uint64_t word) {
  static constexpr BinaryLogs kLogs = make_binary_logs();
  constexpr std::uint64_t kLog2E = 0xB8AA3B295C17F0BBu;  // of 2^63
  const int zeros = leading_zeros(word | 1);
  const auto m = (word | 1) << zeros, i = m >> 55 & 255;  // of 2^63
  const auto r = mulhi(m << 9, kLogs.inverse[i]);         // of 2^72
  auto series = kLog2E / 7;                               // of 2^63
  for (std::uint64_t k = 6; k > 0; --k) series = kLog2E / k - (mulhi(r, series) >> 8);
  const auto log2 = kLogs.log2[i] + (mulhi(r, series) >> 7);  // of 2^64
  return (static_cast<std::uint64_t>(zeros + 1) << 57) + 1 - (log2 >> 7);
}

}  // namespace espalier
