// What the operations that work in vector registers give, on shapes below, beside and above a
// register of any machine. Compiled for several widths, each with all of espalier under
// another name.
#include <bit>
#include <cstdint>
#include <map>
#include <string>

#include "../../src/dense/gemm_bf16.hpp"
#include "dense/relation_sums_cases.hpp"
#include "espalier/base/half.hpp"
#include "espalier/dense/gemm.hpp"
#include "espalier/dense/relation_sums.hpp"
#include "espalier/dense/spmm.hpp"
#include "espalier/nn/dropout.hpp"
#include "espalier/sparse/transpose.hpp"
#include "nn/link_losses_cases.hpp"
#include "nn/link_scores_cases.hpp"
#include "nn/segment_products_cases.hpp"

namespace espalier {
namespace {

using Digests = std::map<std::string, std::uint64_t>;

/// FNV-1a over the bits of all numbers.
template <class T>
std::uint64_t digest_of(const Matrix<T>& m) {
  std::uint64_t digest = 14695981039346656037u;
  for (const T x : m.data) {
    std::uint64_t bits = 0;
    __builtin_memcpy(&bits, &x, sizeof x);
    digest = (digest ^ bits) * 1099511628211u;
  }
  return digest;
}

constexpr std::int64_t kWidths[] = {1,  2,  3,  4,  5,  7,  8,  9,  12,  15,  16,  17,
                                    24, 31, 32, 33, 48, 63, 64, 65, 100, 128, 130, 256};

template <class T>
std::string name_of(const char* operation, std::int64_t columns) {
  return std::string(operation) + (sizeof(T) == 4 ? ", float, " : ", double, ") + std::to_string(columns) +
         " columns";
}

template <class T>
void add_gemms(Digests& digests) {
  std::mt19937_64 random(1);
  const Cpu cpu{1};
  for (const std::int64_t n : kWidths) {
    const auto a = random_matrix<T>(19, n, random), b = random_matrix<T>(n, n + 3, random),
               d = random_matrix<T>(19, n, random);
    auto c = random_matrix<T>(19, n + 3, random), nt = random_matrix<T>(19, 19, random),
         tn = random_matrix<T>(n, n, random);
    gemm<T>(cpu, a, b, c, Update::kAccumulate);
    gemm_nt<T>(cpu, a, d, nt, Update::kAccumulate);
    gemm_tn<T>(cpu, a, d, tn, Update::kAccumulate);
    digests[name_of<T>("gemm", n)] = digest_of(c);
    digests[name_of<T>("gemm_nt", n)] = digest_of(nt);
    digests[name_of<T>("gemm_tn", n)] = digest_of(tn);
  }
}

/// Without AMX, which has one width.
void add_products_in_bf16(Digests& digests) {
  std::mt19937_64 random(3);
  for (const std::int64_t n : kWidths) {
    const auto a = random_matrix<float>(19, n, random), b = random_matrix<float>(n, n + 3, random);
    auto c = random_matrix<float>(19, n + 3, random);
    for (float& x : c.data) x *= random() % 2 == 0 ? 1 : 0x1p-126f;
    bf16::multiply(bf16::portable_kernels(), Cpu{1}, a, b, false, {c.data.data(), c.columns}, c);
    digests[name_of<float>("gemm in bfloat16", n)] = digest_of(c);
  }
}

template <class T>
void add_sparse_products(Digests& digests) {
  std::mt19937_64 random(2);
  const Cpu cpu{1};
  for (const std::int64_t n : kWidths) {
    const auto block = random_block_matrix(30, 50, 20, random);
    const auto x = random_matrix<T>(50, n, random);
    auto y = random_matrix<T>(30, n, random);
    spmm<T>(cpu, block, x, y, Update::kAccumulate);
    digests[name_of<T>("spmm", n)] = digest_of(y);
  }
}

template <class T>
void add_relation_sums(Digests& digests) {
  std::mt19937_64 random(4);
  const Cpu cpu{1};
  for (const std::int64_t n : kWidths)
    for (const std::int64_t bases : {1, 3, 6}) {
      const RelationCase<T> c(random_block_matrix(300, 50, 12, random), n, 7, bases, random);
      const auto r = results_of(cpu, c, c.view());
      const auto of_bases = ", " + std::to_string(bases) + " bases";
      digests[name_of<T>("relation_sums", n) + of_bases] = digest_of(r.m);
      digests[name_of<T>("relation_sums_input_gradient", n) + of_bases] = digest_of(r.dx);
      digests[name_of<T>("relation_sums_coefficient_gradient", n) + of_bases] = digest_of(r.da);
    }
}

template <class T>
void add_segment_products(Digests& digests) {
  std::mt19937_64 random(5);
  const Cpu cpu{1};
  for (const std::int64_t width : kWidths) {
    const SegmentCase<T> c(random_block_matrix(40, 50, 20, random), 2, width, 5, false, random);
    const auto results = by_segments(cpu, c, c.view());
    digests[name_of<T>("sum_segments", width)] = digest_of(results.summed);
    digests[name_of<T>("segment_dots", width)] = digest_of(results.dots);
    digests[name_of<T>("add_to_sources", width)] = digest_of(results.sources);
    digests[name_of<T>("sum_relation", width)] = digest_of(results.totals);
  }
}

template <class T>
void add_dropouts(Digests& digests) {
  std::mt19937_64 random(6);
  const Cpu cpu{1};
  const RandomStream stream{};
  for (const std::int64_t n : kWidths) {
    auto h = random_matrix<T>(20, n, random), gradient = random_matrix<T>(20, n, random);
    relu_dropout<T>(cpu, stream, 0.3, h);
    relu_dropout_backward<T>(cpu, 0.3, h, gradient);
    digests[name_of<T>("relu_dropout", n)] = digest_of(h);
    digests[name_of<T>("relu_dropout_backward", n)] = digest_of(gradient);
  }
}

void add_link_scores(Digests& digests) {
  std::mt19937_64 random(7);
  for_each_link_score([&](const LinkScore& score) {
    for (const std::int64_t n : kWidths) {
      if (!score.kind->takes_width(n)) continue;
      const auto results = on_cpu(score, LinkCase(*score.kind, 30, n, 3, 600, random));
      const auto name = score.kind->name + (" of norm " + std::to_string(score.norm));
      digests[name_of<float>(name.c_str(), n)] = digest_of(results.scores);
      digests[name_of<float>((name + ", vertices").c_str(), n)] = digest_of(results.dh);
      digests[name_of<float>((name + ", relations").c_str(), n)] = digest_of(results.drelations);
    }
  });
}

void add_link_losses(Digests& digests) {
  std::mt19937_64 random(8);
  for_each_link_loss([&](const LinkLoss& loss) {
    for (const std::int64_t n : kWidths) {
      const auto results = on_cpu(loss, ExampleScores(20, n, 3, random), 0.3);
      const std::string name = loss.kind->name;
      digests[name_of<float>((name + " loss").c_str(), n)] = std::bit_cast<std::uint64_t>(results.loss);
      digests[name_of<float>((name + " loss, positives").c_str(), n)] = digest_of(results.dpositive);
      digests[name_of<float>((name + " loss, negatives").c_str(), n)] = digest_of(results.dnegative);
    }
  });
}

Digests digests_of_leaves() {
  Digests digests;
  add_gemms<float>(digests), add_gemms<double>(digests);
  add_products_in_bf16(digests);
  add_sparse_products<float>(digests), add_sparse_products<double>(digests);
  add_relation_sums<float>(digests), add_relation_sums<double>(digests);
  add_segment_products<float>(digests), add_segment_products<double>(digests);
  add_dropouts<float>(digests), add_dropouts<double>(digests);
  add_link_scores(digests), add_link_losses(digests);
  return digests;
}

}  // namespace
}  // namespace espalier
