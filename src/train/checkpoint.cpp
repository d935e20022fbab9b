#include "espalier/train/checkpoint.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "checkpoint_seal.hpp"
#include "espalier/base/version.hpp"
#include "espalier/base/watchdog.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/file/hdf5_memory.hpp"
#include "espalier/train/task.hpp"
#include "known_graph.hpp"

namespace espalier {

namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  input_error("{}: {}", path, why);
}

void require(bool good, const char* what) {
  if (!good)
    throw UserError(ExitCode::kInternal,
                    fmt::format("cannot make a checkpoint: {}: {}", what, hdf5::reason()));
}

void write_numbers(const hdf5::Handle& file, const std::string& name, const std::vector<std::int64_t>& shape,
                   const std::vector<double>& values) {
  const hdf5::Slab slab{0, shape[0], shape.size() > 1 ? shape[1] : 1};
  const auto dataset = hdf5::reserve_dataset(file, name, H5T_IEEE_F64LE, shape);
  require(dataset.exists() &&
              (slab.end == 0 || hdf5::write_slab(dataset, H5T_NATIVE_DOUBLE, slab, values.data())),
          name.c_str());
}

// The scalars, by one list for both directions: visit(name, integer or double).
template <class State, class Visit>
void visit_numbers(State& c, Visit visit) {
  visit("epoch", c.state.cursor.epoch);
  visit("step", c.state.cursor.step);
  visit("ranks", c.ranks);
  visit("seed", c.seed);
  visit("optimizer_steps", c.state.optimizer_steps);
  visit("best_epoch", c.state.best_epoch);
  visit("best_metric", c.state.best_metric);
  visit("evaluations_without_gain", c.state.evaluations_without_gain);
  visit("batches", c.state.counts.batches);
  visit("sampled_edges", c.state.counts.sampled_edges);
  visit("input_rows", c.state.counts.input_rows);
}

constexpr const char* kConfusion = "test_confusion";  // counts as a list of JSON, row after row

// The test split of a task with these metrics, by read(name, integer or double). One that is new,
// or that not every evaluation has, may be missing.
template <class Read>
Metrics read_test(const hdf5::Handle& file, std::span<const MetricKind> metrics, Read read) {
  Metrics test;
  for (const auto& metric : metrics) {
    const auto name = fmt::format("test_{}", metric.name);
    if (H5Aexists(file.id(), name.c_str()) > 0)
      read(name.c_str(), test.scores.emplace_back(metric.name, 0.0).value);
  }
  read("test_vertices", test.vertices);
  return test;
}

constexpr const char* kGroups = "groups";
constexpr const char* kDigest = "weights_digest";
constexpr const char* kFeatures = "features/";

// ---- writing ----

void write_attributes(const hdf5::Handle& file, const Checkpoint& checkpoint) {
  bool good = hdf5::write_long_text_attribute(file, "format", "espalier-checkpoint") &&
              hdf5::write_integer_attribute(file, "version", 1) &&
              hdf5::write_long_text_attribute(file, "espalier", kVersion);
  const auto write = [&](const char* name, auto value) {
    if constexpr (std::is_floating_point_v<decltype(value)>)
      good = hdf5::write_number_attribute(file, name, value) && good;
    else
      good = hdf5::write_integer_attribute(file, name, value) && good;
  };
  visit_numbers(checkpoint, write);
  for (const auto& [name, count] : checkpoint.state.counters) write(name.c_str(), count);
  if (const auto& test = checkpoint.state.test) {
    for (const auto& score : test->scores) write(("test_" + score.name).c_str(), score.value);
    write("test_vertices", test->vertices);
    good = hdf5::write_long_text_attribute(file, kConfusion,
                                           nlohmann::json(checkpoint.state.confusion).dump()) &&
           good;
  }
  good = hdf5::write_long_text_attribute(file, "sample_digest", hex(checkpoint.state.counts.digest)) &&
         hdf5::write_long_text_attribute(file, "config", checkpoint.config) &&
         hdf5::write_long_text_attribute(file, "history", epochs_to_json(checkpoint.epochs)) &&
         hdf5::write_long_text_attribute(file, "graph", graph_to_json(checkpoint.graph)) && good;
  if (checkpoint.groups)
    good = hdf5::write_long_text_attribute(file, kGroups, hex(*checkpoint.groups)) && good;
  if (!checkpoint.weights_digest.empty())
    good = hdf5::write_long_text_attribute(file, kDigest, checkpoint.weights_digest) && good;
  require(good, "an attribute");
}

// Where each tensor's bytes begin, and as the last one where the file ends.
using Places = std::vector<std::int64_t>;

// The file but for its user block and the rows of its tensors.
hdf5::WrittenBytes frame_of(const Checkpoint& checkpoint, Places& places) {
  hdf5::silence();
  hdf5::WrittenBytes bytes;
  auto file = hdf5::create_in_memory(bytes, kUserBlock);
  require(file.valid(), "its beginning");
  write_attributes(file, checkpoint);
  places.clear();
  for (const auto& tensor : checkpoint.state.tensors) {
    const auto type = tensor.words ? H5T_STD_U32LE : hdf5::file_type<float>();
    const auto dataset = hdf5::reserve_dataset(file, "/" + tensor.name, type, {tensor.rows, tensor.columns});
    require(dataset.exists(), tensor.name.c_str());
    places.push_back(hdf5::place_of(dataset));
    require(tensor.size() == 0 || places.back() > 0, tensor.name.c_str());
  }
  write_numbers(file, "/losses", {std::ssize(checkpoint.state.losses)}, checkpoint.state.losses);
  const auto& [mean, deviation] = checkpoint.standardization;
  for (const auto& [name, values] : {std::pair(kMean, &mean), std::pair(kDeviation, &deviation)})
    if (!values->empty()) write_numbers(file, fmt::format("/{}", name), {1, std::ssize(*values)}, *values);
  require(write_columns(file, checkpoint.graph.feature_columns), "the names of columns");
  require(file.close(), "its end");
  places.push_back(bytes.size());
  return bytes;
}

// A file under way, and the checksums of what this rank has written of it.
struct Writing {
  RangedFile file;
  std::vector<RangeChecksum> checksums;

  void write(std::int64_t at, const void* bytes, std::int64_t count) {
    file.write(at, bytes, count);
    add_checksum(at, bytes, count, checksums);
    note_movement();
  }
};

// What lies between the tensors.
void write_frame(const hdf5::WrittenBytes& frame, const Places& places,
                 const std::vector<StateTensor>& tensors, Writing& writing) {
  std::vector<RowRange> kept = {{frame.size(), frame.size()}};
  for (std::size_t k = 0; k < tensors.size(); ++k)
    if (tensors[k].size() > 0)
      kept.push_back({places[k], places[k] + tensors[k].size() * std::int64_t{sizeof(float)}});
  std::ranges::sort(kept, {}, &RowRange::begin);
  auto at = kUserBlock;
  for (const auto& range : kept) {
    Buffer<char> bytes(static_cast<std::size_t>(range.begin - at));
    frame.read(at, std::ssize(bytes), bytes.data());
    writing.write(at, bytes.data(), std::ssize(bytes));
    at = range.end;
  }
}

// The file that rank 0 has begun.
RangedFile join_file(const Communicator& world, const std::string& path) {
  try {
    return RangedFile::join(path);
  } catch (const UserError& error) {
    usage_error("{}: for rank {}, which writes a part of it (all nodes must share that folder)", error.what(),
                world.rank());
  }
}

// My rows of a tensor, whose bytes begin at `place`.
void write_rows(const StateTensor& tensor, std::int64_t place, Writing& writing) {
  const auto row_bytes = tensor.columns * std::int64_t{sizeof(float)};
  tensor.for_each_piece_of_mine([&](RowRange rows, const Buffer<float>& numbers) {
    writing.write(place + rows.begin * row_bytes, numbers.data(), rows.size() * row_bytes);
  });
}

}  // namespace

void write_checkpoint(const Communicator& world, const Checkpoint& checkpoint, const std::string& path) {
  static_assert(std::endian::native == std::endian::little, "rows are written as they lie in memory");
  const auto& tensors = checkpoint.state.tensors;
  Writing writing;
  Places places(tensors.size() + 1);
  agree(world, [&] {
    if (world.rank() != 0) return;
    writing.file = RangedFile::create(path);
    const auto frame = frame_of(checkpoint, places);
    writing.file.resize(frame.size());
    write_frame(frame, places, tensors, writing);
  });
  world.broadcast(std::span(places), 0, "checkpoint");
  agree(world, [&] {
    if (world.rank() != 0) writing.file = join_file(world, path);
    for (std::size_t k = 0; k < tensors.size(); ++k) write_rows(tensors[k], places[k], writing);
    writing.file.sync();
  });
  const auto crc = combine(world, writing.checksums, places.back());
  agree(world, [&] {
    if (world.rank() != 0) return;
    const auto seal = seal_of(kCheckpointTitle, places.back(), crc);
    writing.file.write(0, seal.data(), std::ssize(seal));
    writing.file.sync();
  });
}

// ---- reading ----

namespace {

// `file`: is kept open by what is returned.
StateTensor tensor_in(const std::shared_ptr<const hdf5::Handle>& file, const std::string& name,
                      const std::string& path) {
  auto dataset = std::make_shared<const hdf5::Dataset>(hdf5::open_dataset(*file, "/" + name));
  const bool words = dataset->is_integer() && dataset->type_size == 4 && !dataset->type_signed;
  if (dataset->shape.size() != 2 || !(dataset->is_float() || words))
    refuse(path, name + " is no matrix of numbers");
  const auto read = [file, dataset, name, path, words](RowRange rows, float* to) {
    const hdf5::Slab slab = {rows.begin, rows.end, dataset->columns()};
    const auto type = words ? H5T_NATIVE_UINT32 : hdf5::memory_type<float>();
    if (!hdf5::read_slab(*dataset, type, slab, to))
      refuse(path, fmt::format("{} cannot be read: {}", name, hdf5::reason()));
  };
  return {name, dataset->rows(), dataset->columns(), {{0, dataset->rows()}}, read, words};
}

std::vector<std::int64_t> read_confusion(const std::string& list, const std::string& path) {
  const auto json = nlohmann::json::parse(list, nullptr, /*allow_exceptions=*/false);
  const auto counts = [](const auto& count) { return count.is_number_integer(); };
  if (!json.is_array() || !std::ranges::all_of(json, counts))
    refuse(path, fmt::format("its attribute {} is no list of counts", kConfusion));
  return json.get<std::vector<std::int64_t>>();
}

std::vector<double> read_losses(const hdf5::Handle& file, const std::string& path) {
  const auto dataset = hdf5::open_dataset(file, "/losses");
  if (dataset.shape.size() != 1) refuse(path, "losses are missing");
  std::vector<double> losses(dataset.rows());
  if (!losses.empty() && !hdf5::read_slab(dataset, H5T_NATIVE_DOUBLE, {0, dataset.rows(), 1}, losses.data()))
    refuse(path, fmt::format("losses cannot be read: {}", hdf5::reason()));
  return losses;
}

// Not collective.
Checkpoint read_whole_file(const std::string& path) {
  hdf5::silence();
  const auto opened = std::make_shared<const hdf5::Handle>(hdf5::open_file_unlocked(path));
  const auto& file = *opened;
  if (!file.valid()) refuse(path, "is no HDF5 file behind its first 512 bytes");
  Checkpoint checkpoint;
  auto& state = checkpoint.state;
  const auto text = [&](const char* name) {
    std::string value;
    if (!hdf5::read_text_attribute(file, name, value))
      refuse(path, fmt::format("its attribute {} is missing", name));
    return value;
  };
  std::set<std::string> taken;
  const auto read = [&]<class Value>(const char* name, Value& value) {
    taken.insert(name);
    bool there = false;
    if constexpr (std::is_floating_point_v<Value>) {
      there = hdf5::read_number_attribute(file, name, value);
    } else {
      std::int64_t wide = 0;
      there = hdf5::read_integer_attribute(file, name, wide);
      value = static_cast<Value>(wide);
    }
    if (!there) refuse(path, fmt::format("its attribute {} is missing", name));
  };
  std::int64_t version = 0;
  read("version", version);
  if (version != 1) refuse(path, fmt::format("is of version {}; this program reads version 1", version));
  visit_numbers(checkpoint, read);
  for (const auto* task : task_kinds())
    if (H5Aexists(file.id(), fmt::format("test_{}", task->metrics.front().name).c_str()) > 0)
      state.test = read_test(file, task->metrics, read);
  for (const auto& name : hdf5::attribute_names(file))
    if (std::int64_t count = 0;
        !taken.contains(name) && hdf5::read_integer_attribute(file, name.c_str(), count))
      state.counters[name] = count;
  // Those of earlier versions have none.
  if (H5Aexists(file.id(), kConfusion) > 0) state.confusion = read_confusion(text(kConfusion), path);
  for (const auto& name : hdf5::dataset_names(file))
    if (name != "losses" && !name.starts_with(kFeatures) && !is_of_columns(name))
      state.tensors.push_back(tensor_in(opened, name, path));
  checkpoint.standardization = read_standardization(file, path);
  if (!read_columns(file, checkpoint.graph.feature_columns))
    refuse(path, "its names of columns cannot be understood");
  state.losses = read_losses(file, path);
  checkpoint.config = text("config");
  if (H5Aexists(file.id(), kDigest) > 0) checkpoint.weights_digest = text(kDigest);
  try {
    state.counts.digest = std::stoull(text("sample_digest"), nullptr, 16);
    checkpoint.epochs = epochs_from_json(text("history"));
    read_graph(text("graph"), checkpoint.graph);
    if (H5Aexists(file.id(), kGroups) > 0) checkpoint.groups = digest_from_hex(text(kGroups));
  } catch (const UserError& error) {
    refuse(path, error.what());
  } catch (const std::exception& error) {
    refuse(path, fmt::format("cannot be understood: {}", error.what()));
  }
  const auto& [mean, deviation] = checkpoint.standardization;
  // Of the target; without any, another type has the one that was standardised.
  const auto features = checkpoint.graph.features;
  if (mean.size() != deviation.size() || (!mean.empty() && features > 0 && std::ssize(mean) != features))
    refuse(path, fmt::format("features/mean has {} columns, features/deviation {}, and the graph {}",
                             mean.size(), deviation.size(), features));
  return checkpoint;
}

}  // namespace

Checkpoint read_checkpoint(const Communicator& world, const std::string& path) {
  check_seal(world, path);
  Checkpoint checkpoint;
  agree(world, [&] { checkpoint = read_whole_file(path); });
  return checkpoint;
}

}  // namespace espalier
