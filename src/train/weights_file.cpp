#include "espalier/train/weights_file.hpp"

#include <bit>
#include <filesystem>

#include "espalier/base/ranged_file.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/dense/first_not_finite.hpp"
#include "espalier/file/archive.hpp"

namespace espalier {

namespace {

constexpr ArchiveFormat kFormat = {"espalier-weights", "weights.h5"};
constexpr std::string_view kWeights = "weights/", kStatistics = "statistics/", kBest = "best/",
                           kEmbedding = "weights/embedding.";

constexpr std::uint64_t kOffset = 0xcbf29ce484222325u, kPrime = 0x100000001b3u;  // FNV-1a

// Where weights are not finite, in words; empty where they are.
std::string not_finite_in(const std::vector<StateTensor>& tensors) {
  for (const auto& tensor : tensors) {
    const auto all = tensor.all();
    if (const auto k = first_not_finite(Cpu{}, all.data(), std::ssize(all)); k >= 0)
      return fmt::format("{} has {} in row {}, column {}", tensor.name, all[k], k / tensor.columns,
                         k % tensor.columns);
  }
  return {};
}

bool is_trained(std::string_view name) {
  return name.starts_with(kWeights) || name.starts_with(kStatistics);
}

// Earlier versions numbered the statistics from 0: mean and variance of layer 1, of layer 2, ...
std::string name_of_today(const std::string& name) {
  if (!name.starts_with(kStatistics) || name.find_first_not_of("0123456789", kStatistics.size()) != name.npos)
    return name;
  const auto number = std::stoll(name.substr(kStatistics.size()));
  return fmt::format("{}layer{}.{}", kStatistics, number / 2 + 1, number % 2 == 0 ? "mean" : "variance");
}

// Collective.
TrainedWeights from_checkpoint(const Communicator& world, const std::string& path) {
  auto checkpoint = read_checkpoint(world, path);
  auto weights = weights_of(world, checkpoint.state);
  static_cast<TrainedOn&>(weights) = std::move(checkpoint);
  return weights;
}

// Empty: they are of the same. What a file of an earlier version does not say is not compared.
std::string why_of_another_run(const Checkpoint& embeddings, const TrainedWeights& weights) {
  if (embeddings.state.best_epoch != weights.epoch || embeddings.config != weights.config)
    return fmt::format("of epoch {}, and the weights are of epoch {}{}", embeddings.state.best_epoch,
                       weights.epoch, embeddings.config == weights.config ? "" : ", and of another config");
  const auto &theirs = embeddings.graph.content, &ours = weights.graph.content;
  if (!theirs.datasets.empty() && !ours.datasets.empty())
    if (const auto difference = describe_difference(theirs, ours); !difference.empty())
      return fmt::format("on another graph, in {}", difference);
  if (!embeddings.digest.empty() && !weights.digest.empty() && embeddings.digest != weights.digest)
    return fmt::format("its weights_digest is {}, and that of the weights {}", embeddings.digest,
                       weights.digest);
  return {};
}

// Collective. The embeddings beside a weights.h5.
void read_embeddings(const Communicator& world, const std::string& path, TrainedWeights& weights) {
  const auto beside = (std::filesystem::path(path).parent_path() / kEmbeddingsFile).string();
  bool is_there = false;
  agree(world, [&] {
    std::error_code error;
    is_there = std::filesystem::exists(beside, error);
  });
  weights.no_embeddings = fmt::format("{} is missing, which holds the rows that were learnt with it", beside);
  if (!is_there) return;
  auto checkpoint = read_checkpoint(world, beside);
  // Another network's may lie there; what misses its own says so.
  const auto other = why_of_another_run(checkpoint, weights);
  if (other.empty())
    weights.embeddings = std::move(checkpoint.state.tensors);
  else
    weights.no_embeddings = fmt::format("{} is of another run: {}", beside, other);
}

// Collective. All rows of a tensor of which each rank can give some.
Buffer<float> whole_of(const Communicator& world, const StateTensor& tensor) {
  Buffer<float> mine;
  for (const auto& rows : tensor.mine) {
    mine.resize(mine.size() + static_cast<std::size_t>(rows.size() * tensor.columns));
    if (rows.size() > 0) tensor.read(rows, mine.data() + mine.size() - rows.size() * tensor.columns);
  }
  const bool whole = std::ssize(mine) == tensor.size();
  if (world.all_reduce(std::int64_t{whole}, Reduction::kMin, "checkpoint") != 0) return mine;
  // One range of each rank, one after another (file/state_tensor.hpp).
  auto all = world.all_gather_v(std::span<const float>(mine), "checkpoint");
  return {all.begin(), all.end()};
}

// Collective. A tensor of a state.
void take(const Communicator& world, const StateTensor& tensor, const std::string& name,
          TrainedWeights& weights) {
  if (name.starts_with(kEmbedding)) {
    weights.embeddings.push_back(tensor);
    weights.embeddings.back().name = name;
  } else {
    weights.tensors.push_back(
        kept_tensor(name_of_today(name), tensor.rows, tensor.columns, whole_of(world, tensor)));
  }
}

}  // namespace

TrainedWeights weights_of(const Communicator& world, const TrainingState& state) {
  TrainedWeights weights;
  weights.best = state.best_epoch > 0;
  weights.epoch = weights.best ? state.best_epoch : state.cursor.epoch - (state.cursor.step == 0 ? 1 : 0);
  for (const auto& tensor : state.tensors) {
    const bool of_best = tensor.name.starts_with(kBest);
    const auto name = of_best ? tensor.name.substr(kBest.size()) : tensor.name;
    if (of_best == weights.best && is_trained(name)) take(world, tensor, name, weights);
  }
  return weights;
}

std::uint64_t weights_digest(std::span<const StateTensor> tensors) {
  std::uint64_t digest = kOffset;
  for (const auto& tensor : tensors)
    if (tensor.name.starts_with(kWeights))
      for (const float x : tensor.all()) digest = (digest ^ std::bit_cast<std::uint32_t>(x)) * kPrime;
  return digest;
}

// Of rows: the sum of an FNV-1a over (number of the row, its bits), where types follow one another.
std::uint64_t weights_digest(const Communicator& world, const TrainedWeights& weights) {
  const auto digest = weights_digest(weights.tensors);
  if (weights.embeddings.empty()) return digest;
  std::uint64_t sums[] = {0};
  std::int64_t first = 0;
  for (const auto& tensor : weights.embeddings) {
    tensor.for_each_piece_of_mine([&](RowRange rows, const Buffer<float>& numbers) {
      const float* next = numbers.data();
      for (auto row = first + rows.begin; row < first + rows.end; ++row) {
        std::uint64_t of_row = (kOffset ^ static_cast<std::uint64_t>(row)) * kPrime;
        for (std::int64_t j = 0; j < tensor.columns; ++j)
          of_row = (of_row ^ std::bit_cast<std::uint32_t>(*next++)) * kPrime;
        sums[0] += of_row;
      }
    });
    first += tensor.rows;
  }
  world.all_reduce(std::span<std::uint64_t>(sums), Reduction::kSum, "report");
  return (digest ^ sums[0]) * kPrime;
}

Checkpoint embeddings_of(const TrainedWeights& weights, int ranks) {
  Checkpoint checkpoint{weights, {}, {}};
  checkpoint.state.tensors = weights.embeddings;
  checkpoint.state.best_epoch = weights.epoch;
  checkpoint.ranks = ranks;
  return checkpoint;
}

std::string weights_bytes(const TrainedWeights& weights) {
  if (const auto place = not_finite_in(weights.tensors); !place.empty())
    throw UserError(ExitCode::kDiverged, "weights.h5 is not written: " + place);
  return sealed_bytes(kFormat, weights.tensors, [&](ArchiveWriter& archive) {
    archive("epoch", weights.epoch);
    write_trained_on(archive, weights);
  });
}

bool is_weights_file(const std::string& path) {
  return is_sealed_as(kFormat, path);
}

TrainedWeights weights_from(const std::string& bytes, const std::string& path) {
  const ArchiveReader archive(kFormat, path, bytes);
  TrainedWeights weights{read_trained_on(archive), {}};
  archive("epoch", weights.epoch);
  for (const auto& name : hdf5::dataset_names(archive.file()))
    if (is_trained(name)) weights.tensors.push_back(archive.tensor(name));
  return weights;
}

TrainedWeights read_weights(const Communicator& world, const std::string& path) {
  std::string bytes;
  agree(world, [&] {
    if (world.rank() == 0 && is_weights_file(path)) bytes = bytes_of_file(path);
  });
  bytes = world.broadcast_text(std::move(bytes), 0, "setup");
  auto weights = bytes.empty() ? from_checkpoint(world, path) : weights_from(bytes, path);
  if (!bytes.empty()) read_embeddings(world, path, weights);
  if (const auto place = not_finite_in(weights.tensors); !place.empty())
    input_error("{}: {}: its training diverged; name weights of an earlier epoch, or train again", path,
                place);
  return weights;
}

}  // namespace espalier
