#include "espalier/train/weights_file.hpp"

#include <zlib.h>

#include <bit>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "checkpoint_seal.hpp"
#include "espalier/base/version.hpp"
#include "espalier/comm/agree.hpp"
#include "espalier/dense/first_not_finite.hpp"
#include "espalier/dense/matrix.hpp"
#include "espalier/file/hdf5_memory.hpp"
#include "espalier/train/checkpoint.hpp"
#include "known_graph.hpp"

namespace espalier {

namespace {

constexpr const char* kTitle = "espalier-weights 1";
constexpr std::string_view kWeights = "weights/", kStatistics = "statistics/", kBest = "best/",
                           kEmbedding = "weights/embedding.";

constexpr std::uint64_t kOffset = 0xcbf29ce484222325u, kPrime = 0x100000001b3u;  // FNV-1a

bool has_title(const std::string& bytes) {
  return bytes.starts_with(fmt::format("{}\n", kTitle));
}

// The seal that fits the bytes behind it.
std::string seal_of_bytes(const std::string& bytes) {
  const auto* data = reinterpret_cast<const Bytef*>(bytes.data());
  const auto checksum = crc32_z(crc32_z(0, nullptr, 0), data + kUserBlock, bytes.size() - kUserBlock);
  return seal_of(kTitle, std::ssize(bytes), static_cast<std::uint32_t>(checksum));
}

// Throws UserError(kInput), naming `path` and the damage, where the bytes are not, or no longer, a
// weights.h5.
void check_bytes(const std::string& bytes, const std::string& path) {
  if (std::ssize(bytes) < kUserBlock || !has_title(bytes))
    input_error("{}: its first bytes are not \"{}\"", path, kTitle);
  const std::string found = bytes.c_str();  // the block ends with zeros
  if (found.find(fmt::format("\nbytes {}\n", bytes.size())) == std::string::npos)
    input_error("{}: is damaged: it has {} bytes, not as many as were written", path, bytes.size());
  if (!bytes.starts_with(seal_of_bytes(bytes)))
    input_error("{}: is damaged: its checksum does not fit its bytes", path);
}

void require_made(bool good, const std::string& what) {
  if (!good)
    throw UserError(ExitCode::kInternal,
                    fmt::format("cannot make a file in memory: {}: {}", what, hdf5::reason()));
}

template <class T>
hid_t native_type() {
  return std::is_same_v<T, float> ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE;
}

template <class T>
void write_matrix(const hdf5::Handle& file, const std::string& name, std::int64_t rows, std::int64_t columns,
                  const T* values) {
  const auto type = std::is_same_v<T, float> ? H5T_IEEE_F32LE : H5T_IEEE_F64LE;
  const auto dataset = hdf5::create_dataset(file, "/" + name, type, {rows, columns});
  require_made(dataset.exists() && hdf5::write_slab(dataset, native_type<T>(), {0, rows, columns}, values),
               name);
}

Matrix<float> read_matrix(const hdf5::Handle& file, const std::string& name, const std::string& path) {
  const auto dataset = hdf5::open_dataset(file, "/" + name);
  if (dataset.shape.size() != 2 || !dataset.is_float())
    input_error("{}: {} is no matrix of numbers", path, name);
  Matrix<float> matrix(dataset.rows(), dataset.columns());
  if (!hdf5::read_slab(dataset, native_type<float>(), {0, matrix.rows, matrix.columns}, matrix.data.data()))
    input_error("{}: {} cannot be read: {}", path, name, hdf5::reason());
  return matrix;
}

// Where weights are not finite, in words; empty where they are.
std::string not_finite_in(const std::vector<NamedTensor>& tensors) {
  for (const auto& tensor : tensors)
    if (const auto k = first_not_finite(Cpu{}, tensor.values.data(), std::ssize(tensor.values)); k >= 0)
      return fmt::format("{} has {} in row {}, column {}", tensor.name, tensor.values[k], k / tensor.columns,
                         k % tensor.columns);
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

void write_row(const hdf5::Handle& file, const char* name, const std::vector<double>& values) {
  if (!values.empty()) write_matrix(file, name, 1, std::ssize(values), values.data());
}

// Collective.
TrainedWeights from_checkpoint(const Communicator& world, const std::string& path) {
  auto checkpoint = read_checkpoint(world, path);
  auto weights = weights_of(world, checkpoint.state);
  weights.config = std::move(checkpoint.config);
  weights.graph = std::move(checkpoint.graph);
  weights.standardization = std::move(checkpoint.standardization);
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
  if (!embeddings.weights_digest.empty() && !weights.digest.empty() &&
      embeddings.weights_digest != weights.digest)
    return fmt::format("its weights_digest is {}, and that of the weights {}", embeddings.weights_digest,
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
    weights.tensors.push_back({name_of_today(name), tensor.rows, tensor.columns, whole_of(world, tensor)});
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

std::uint64_t weights_digest(std::span<const NamedTensor> tensors) {
  std::uint64_t digest = kOffset;
  for (const auto& tensor : tensors)
    if (tensor.name.starts_with(kWeights))
      for (const float x : tensor.values) digest = (digest ^ std::bit_cast<std::uint32_t>(x)) * kPrime;
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
  Checkpoint checkpoint;
  checkpoint.state.tensors = weights.embeddings;
  checkpoint.state.best_epoch = weights.epoch;
  checkpoint.config = weights.config;
  checkpoint.weights_digest = weights.digest;
  checkpoint.graph = weights.graph;
  checkpoint.standardization = weights.standardization;
  checkpoint.ranks = ranks;
  return checkpoint;
}

std::string weights_bytes(const TrainedWeights& weights) {
  if (const auto place = not_finite_in(weights.tensors); !place.empty())
    throw UserError(ExitCode::kDiverged, "weights.h5 is not written: " + place);
  hdf5::silence();
  hdf5::WrittenBytes written;
  auto file = hdf5::create_in_memory(written, kUserBlock);
  require_made(file.valid(), "its beginning");
  if (!hdf5::write_long_text_attribute(file, "format", "espalier-weights") ||
      !hdf5::write_integer_attribute(file, "version", 1) ||
      !hdf5::write_long_text_attribute(file, "espalier", kVersion) ||
      !hdf5::write_integer_attribute(file, "epoch", weights.epoch) ||
      !hdf5::write_long_text_attribute(file, "weights_digest", weights.digest) ||
      !hdf5::write_long_text_attribute(file, "config", weights.config) ||
      !hdf5::write_long_text_attribute(file, "graph", graph_to_json(weights.graph)))
    throw UserError(ExitCode::kInternal, "cannot make weights.h5: an attribute: " + hdf5::reason());
  for (const auto& tensor : weights.tensors)
    write_matrix(file, tensor.name, tensor.rows, tensor.columns, tensor.values.data());
  write_row(file, kMean, weights.standardization.mean);
  write_row(file, kDeviation, weights.standardization.deviation);
  require_made(write_columns(file, weights.graph.feature_columns), "the names of columns");
  require_made(file.close(), "its end");
  std::string bytes(static_cast<std::size_t>(written.size()), '\0');
  written.read(0, written.size(), bytes.data());
  return bytes.replace(0, kUserBlock, seal_of_bytes(bytes));
}

bool is_weights_file(const std::string& path) {
  const auto file = RangedFile::open(path);
  std::string beginning(64, '\0');
  file.read(0, beginning.data(), std::ssize(beginning));
  return has_title(beginning);
}

TrainedWeights weights_from(const std::string& bytes, const std::string& path) {
  check_bytes(bytes, path);
  hdf5::silence();
  hdf5::WrittenBytes image;
  image.write(0, std::ssize(bytes), bytes.data());
  const auto file = hdf5::open_in_memory(image);
  if (!file.valid()) input_error("{}: is no HDF5 file behind its first {} bytes", path, kUserBlock);
  TrainedWeights weights;
  std::string graph;
  std::int64_t version = 0;
  if (!hdf5::read_integer_attribute(file, "version", version) || version != 1)
    input_error("{}: its attribute version is {}; this program reads version 1", path,
                hdf5::describe_attribute(file, "version"));
  if (!hdf5::read_integer_attribute(file, "epoch", weights.epoch) ||
      !hdf5::read_text_attribute(file, "config", weights.config) ||
      !hdf5::read_text_attribute(file, "graph", graph))
    input_error("{}: one of its attributes epoch, config and graph is missing", path);
  hdf5::read_text_attribute(file, "weights_digest", weights.digest);
  try {
    read_graph(graph, weights.graph);
  } catch (const std::exception& error) {
    input_error("{}: its attribute graph cannot be understood: {}", path, error.what());
  }
  for (const auto& name : hdf5::dataset_names(file)) {
    if (!is_trained(name)) continue;
    auto matrix = read_matrix(file, name, path);
    weights.tensors.push_back({name, matrix.rows, matrix.columns, std::move(matrix.data)});
  }
  if (!read_columns(file, weights.graph.feature_columns))
    input_error("{}: its names of columns cannot be understood", path);
  weights.standardization = read_standardization(file, path);
  const auto& [mean, deviation] = weights.standardization;
  if (mean.size() != deviation.size())
    input_error("{}: {} has {} columns, {} has {}", path, kMean, mean.size(), kDeviation, deviation.size());
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
