// What `espalier calibrate` measures: links, sampling, layers of a network, updates, a disk.
#include "espalier/plan/machine.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

#include "espalier/base/clock.hpp"
#include "espalier/base/watchdog.hpp"
#include "espalier/feature/disk_rows.hpp"
#include "espalier/file/content_digest.hpp"
#include "espalier/train/gradient_reduction.hpp"
#include "espalier/train/optimizer.hpp"
#include "standard_work.hpp"

namespace espalier {

namespace {

using standard_work::kVertices, standard_work::kWidth, standard_work::make_graph, standard_work::numbers,
    standard_work::sample_some;

constexpr int kRepetitions = 7;

std::array<double, kRepetitions> seconds_of(const std::function<void()>& work) {
  std::array<double, kRepetitions> seconds{};
  work();  // memory is there, and warm, from now on
  for (auto& time : seconds) {
    const double start = now();
    work();
    time = now() - start;
  }
  std::ranges::sort(seconds);
  return seconds;
}
double least_seconds(const std::function<void()>& work) {
  return std::max(seconds_of(work).front(), 1e-9);
}

// ---- the network ----

// Every rank sends so many bytes to every other.
double exchange_seconds(const Communicator& group, std::int64_t bytes) {
  const Buffer<char> sent(bytes * group.size(), 'x');
  const std::vector<std::int64_t> counts(group.size(), bytes);
  Buffer<char> received;
  constexpr int kAtOnce = 20;
  const auto seconds = seconds_of([&] {
    group.barrier();
    for (int k = 0; k < kAtOnce; ++k)
      group.all_to_all_v(std::span<const char>(sent), counts, counts, received, "setup");
  });
  return std::max(seconds.front() / kAtOnce, 1e-9);  // the least disturbed
}

Link measure_link(const Communicator& group) {
  constexpr std::int64_t kLarge = 4 << 20;
  const double others = group.size() - 1;
  const double small = exchange_seconds(group, 8), large = exchange_seconds(group, kLarge / group.size());
  const double bytes = static_cast<double>(kLarge / group.size()) * others;
  return {1e6 * small / others, bytes / (large > 2 * small ? large - small : large) / 1e9};
}

// ---- the work ----

void measure_sampling(const Cpu& cpu, const DistCsr<std::int32_t>& a, Machine& machine, Minibatch& kept) {
  const auto node_wise = make_sampler("graphsage", a, {.fanout = {15, 10, 5}});
  std::vector<Minibatch> drawn;
  const double seconds = least_seconds([&] { drawn = sample_some(cpu, *node_wise, 4, 512); });
  double picks = 0;
  for (const auto& minibatch : drawn) picks += static_cast<double>(minibatch.sampled_edges());
  machine.draws = picks / seconds / 1e6;
  kept = drawn.front();

  const auto m = normalize_rows(a, false, false);
  const auto layer_wise =
      make_sampler("ladies", m, {.fanout = {512, 512}, .aggregation = Aggregation::kMatrix});
  const double layer_seconds = least_seconds([&] { drawn = sample_some(cpu, *layer_wise, 8, 512); });
  double scanned = 0;
  for (const auto& minibatch : drawn)
    for (const auto& layer : minibatch.blocks)
      for (std::int64_t r = 0; r < layer.rows; ++r)
        scanned += static_cast<double>(m.local.row_size(minibatch.vertices[r]));
  machine.entries = 2 * scanned / layer_seconds / 1e6;  // summed, then searched
}

void measure_network(const Cpu& cpu, const Grid& grid, const BlockView<Cpu>& block, Machine& machine) {
  const RowStore store(grid, block_partition(kVertices, 1), numbers(kVertices, kWidth));
  std::vector<std::int64_t> ids;
  for (std::int64_t k = 0; k < kVertices / 4; ++k) ids.push_back(k * 7919 % kVertices);
  std::vector<Matrix<float>> rows;
  const std::vector<std::span<const std::int64_t>> lists = {ids};
  machine.rows_gbs = static_cast<double>(4 * kWidth * std::ssize(ids)) /
                     least_seconds([&] { store.fetch(cpu, lists, rows, "setup"); }) / 1e9;

  const auto x = numbers(block.columns, kWidth);
  Matrix<float> y(block.rows, kWidth);
  machine.spmm_gbs = static_cast<double>(4 * kWidth * block.entries()) /
                     least_seconds([&] { spmm<float>(cpu, block, x, y); }) / 1e9;

  const std::int64_t tall = 20000;
  const auto a = numbers(tall, kWidth), w = numbers(kWidth, kWidth);
  Matrix<float> c(tall, kWidth);
  const auto product_rate = [&](Precision precision) {
    return 2e-9 * static_cast<double>(tall * kWidth * kWidth) / least_seconds([&] {
             gemm<float>(Cpu{cpu.threads, precision}, a, w, c);
           });
  };
  machine.gemm_gflops = product_rate(Precision::kFp32);
  machine.gemm_bf16_gflops = product_rate(Precision::kBf16);

  machine.elements_gbs = static_cast<double>(4 * tall * kWidth) /
                         least_seconds([&] { relu_dropout<float>(cpu, {}, 0.5, c); }) / 1e9;
}

void measure_update(const Communicator& self, Machine& machine) {
  constexpr std::int64_t kParameters = 1 << 20;
  std::vector<Parameter<float>> parameters = {{"weights", 1, true, numbers(1024, kParameters / 1024)}};
  std::vector<Matrix<float>> gradients = {numbers(1024, kParameters / 1024)};
  Optimizer<float> optimizer(Cpu{}, {}, parameters);
  machine.parameters = static_cast<double>(kParameters) /
                       least_seconds([&] { optimizer.step({}, 1e-3, gradients, parameters); }) / 1e6;
  GradientReduction reduction(Cpu{}, self, true);  // the slower of the two
  machine.gradients = static_cast<double>(kParameters) / least_seconds([&] {
                        reduction.add({&gradients[0]});
                        reduction.finish(1, {&gradients[0]});
                      }) /
                      1e6;
}

// ---- the disk ----

// Every sixteenth chunk of a file in the folder, which the system was told to forget, as a
// minibatch reads rows: the most of some times. 0: no file can be written there.
double disk_rate(const Cpu& cpu, const std::string& folder) {
  constexpr std::int64_t kRows = 1 << 17, kApart = 16, kTimes = 3;
  const RowForm form = {&row_kind_of(float()), kWidth};
  const auto chunk = DiskRows::rows_of_chunk(kRows, form.row_bytes());
  const auto values = numbers(kRows, kWidth);
  std::vector<std::uint64_t> digests;
  for (std::int64_t row = 0; row < kRows; row += chunk)
    digests.push_back(digest_rows(form, reinterpret_cast<const std::byte*>(values.row(row)), chunk, row));
  try {
    auto file = RangedFile::unnamed(folder);
    file.write(0, values.row(0), 4 * kRows * kWidth);
    file.sync();
    const DiskRows rows({std::move(file), folder, "a trial", kRows, form, std::move(digests)});
    double rate = 0;
    for (std::int64_t time = 0; time < kTimes; ++time) {
      std::vector<std::int64_t> wanted, places;
      for (std::int64_t row = time * chunk; row < kRows; row += kApart * chunk) wanted.push_back(row);
      places.resize(wanted.size());
      std::iota(places.begin(), places.end(), std::int64_t{0});
      StoredRows<Cpu> to(form, std::ssize(wanted));
      rows.forget();
      const double start = now();
      const auto bytes = rows.read(cpu, wanted, places, to.data);
      rate = std::max(rate, static_cast<double>(bytes) / (now() - start) / 1e9);
    }
    return rate;
  } catch (const UserError&) {
    return 0;
  }
}

// A machine whose ranks cannot all write there has no rate.
void measure_disk(const Communicator& world, const Cpu& cpu, const std::string& folder, Machine& machine) {
  machine.disk_gbs = disk_rate(cpu, folder);
  if (world.all_reduce(machine.disk_gbs, Reduction::kMin, "setup") == 0) machine.disk_gbs = 0;
}

// Ranks of a node exchange with each other, and with those of my place on other nodes.
void measure_links(const Communicator& world, const NodePlace& node, Machine& machine) {
  const auto inside = ranks_of_node(world), across = world.split(node.place, world.rank());
  if (world.size() == 1) return;
  if (inside.size() > 1) machine.inside = measure_link(inside);
  machine.network = across.size() > 1 ? measure_link(across) : machine.inside;
  if (inside.size() == 1) machine.inside = machine.network;
}

}  // namespace

void measure_machine(const Communicator& world, const NodePlace& node, const std::string& folder,
                     Machine& machine) {
  // 1. Messages.
  note_activity("measuring");
  measure_links(world, node, machine);

  // 2. Work, by all ranks at once.
  const auto self = world.split(world.rank(), 0);
  const Grid alone(self, 1);
  const Cpu cpu{static_cast<int>(machine.threads)};
  const auto graph = make_graph(alone);
  Minibatch minibatch;
  world.barrier();
  measure_sampling(cpu, graph, machine, minibatch);
  measure_network(cpu, alone, minibatch.blocks.front(), machine);
  measure_update(self, machine);
  measure_disk(world, cpu, folder, machine);
  for (double* rate :
       {&machine.draws, &machine.entries, &machine.rows_gbs, &machine.spmm_gbs, &machine.gemm_gflops,
        &machine.gemm_bf16_gflops, &machine.elements_gbs, &machine.parameters, &machine.gradients,
        &machine.disk_gbs, &machine.inside.latency_us, &machine.inside.bandwidth_gbs,
        &machine.network.latency_us, &machine.network.bandwidth_gbs})
    *rate = world.all_reduce(*rate, Reduction::kSum, "setup") / world.size();
}

}  // namespace espalier
