#include "espalier/train/checkpoint.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>

#include "espalier/base/version.hpp"
#include "espalier/graph/hdf5.hpp"
#include "espalier/train/task.hpp"

namespace espalier {

namespace {

// ---- the user block ----

constexpr std::size_t kUserBlock = 512;
constexpr const char* kTitle = "espalier-checkpoint 1";
constexpr char kSignature[] = "\x89HDF\r\n\x1a\n";

std::uint32_t checksum(const std::string& bytes) {
  const auto* data = reinterpret_cast<const Bytef*>(bytes.data());
  return static_cast<std::uint32_t>(
      crc32_z(crc32_z(0, nullptr, 0), data + kUserBlock, bytes.size() - kUserBlock));
}

std::string user_block(const std::string& bytes) {
  return fmt::format("{}\nbytes {}\ncrc32 {:08x}\n", kTitle, bytes.size(), checksum(bytes));
}

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  input_error("{}: {}", path, why);
}

void check_user_block(const std::string& bytes, const std::string& path) {
  if (bytes.size() < kUserBlock || !bytes.starts_with(kTitle))
    refuse(path,
           "is no checkpoint of this program (its first bytes are not \"" + std::string(kTitle) + "\")");
  const std::string found = bytes.c_str();  // the block ends with zeros
  const auto size_at = found.find("bytes ") + 6;
  if (found.compare(size_at, std::to_string(bytes.size()).size() + 1, std::to_string(bytes.size()) + "\n") !=
      0)
    refuse(path, fmt::format("is damaged: it has {} bytes and was written with {}", bytes.size(),
                             found.substr(size_at, found.find('\n', size_at) - size_at)));
  auto block = user_block(bytes);
  block.resize(kUserBlock, '\0');
  if (!bytes.starts_with(block)) refuse(path, "is damaged: its checksum does not fit its bytes");
}

// ---- writing and reading HDF5 in memory ----

hdf5::Handle in_memory(const std::string* image) {
  hdf5::Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fapl_core(access.id(), std::size_t{1} << 20, 0);
  if (image != nullptr) H5Pset_file_image(access.id(), const_cast<char*>(image->data()), image->size());
  return access;
}

void require(bool good, const char* what) {
  if (!good)
    throw UserError(ExitCode::kInternal,
                    fmt::format("cannot make a checkpoint: {}: {}", what, hdf5::reason()));
}

std::string image_of(const hdf5::Handle& file) {
  require(hdf5::flush(file), "its end");
  const auto size = H5Fget_file_image(file.id(), nullptr, 0);
  require(size > 0, "its bytes");
  std::string image(static_cast<std::size_t>(size), '\0');
  require(H5Fget_file_image(file.id(), image.data(), image.size()) > 0, "its bytes");
  // HDF5 gives the file without its user block.
  if (image.starts_with(kSignature)) image.insert(0, kUserBlock, '\0');
  return image;
}

template <class T>
void write_array(const hdf5::Handle& file, const std::string& name, std::vector<std::int64_t> shape,
                 const T* values, hid_t file_type, hid_t memory_type) {
  const hdf5::Slab slab{0, shape[0], shape.size() > 1 ? shape[1] : 1};
  const auto dataset = hdf5::create_dataset(file, name, file_type, shape);
  require(dataset.exists() && (slab.end == 0 || hdf5::write_slab(dataset, memory_type, slab, values)),
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

// The test split of a task with these metrics, by read(name, integer or double).
template <class Read>
Metrics read_test(std::span<const MetricKind> metrics, Read read) {
  Metrics test;
  for (const auto& metric : metrics)
    read(fmt::format("test_{}", metric.name).c_str(), test.scores.emplace_back(metric.name, 0.0).value);
  read("test_vertices", test.vertices);
  return test;
}

constexpr const char* kFeatures = "features/";

template <class State, class Visit>
void visit_standardization(State& c, Visit visit) {
  visit(std::string(kFeatures) + "mean", c.standardization.mean);
  visit(std::string(kFeatures) + "deviation", c.standardization.deviation);
}

// The numbers by which a graph is known again.
template <class Graph>
auto graph_numbers(Graph& graph) {
  using Number = std::pair<const char*, decltype(&graph.nodes)>;
  return std::array<Number, 7>{{{"nodes", &graph.nodes},
                                {"edges", &graph.edges},
                                {"features", &graph.features},
                                {"classes", &graph.classes},
                                {"train", &graph.train},
                                {"valid", &graph.valid},
                                {"test", &graph.test}}};
}

std::string graph_to_json(const GraphInfo& graph) {
  nlohmann::ordered_json json;
  for (const auto& [name, number] : graph_numbers(graph)) json[name] = *number;
  for (const auto& [name, digest] : graph.content.datasets) json["digests"][name] = hex(digest);
  return json.dump();
}

}  // namespace

std::string checkpoint_bytes(const Checkpoint& checkpoint) {
  hdf5::silence();
  const hdf5::Handle creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
  H5Pset_userblock(creation.id(), kUserBlock);
  const auto access = in_memory(nullptr);
  const hdf5::Handle file(H5Fcreate("checkpoint", H5F_ACC_TRUNC, creation.id(), access.id()), H5Fclose);
  require(file.valid(), "its beginning");

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
  if (const auto& test = checkpoint.state.test) {
    for (const auto& score : test->scores) write(("test_" + score.name).c_str(), score.value);
    write("test_vertices", test->vertices);
    good = hdf5::write_long_text_attribute(file, kConfusion,
                                           nlohmann::json(checkpoint.state.confusion).dump()) &&
           good;
  }
  good = hdf5::write_long_text_attribute(file, "sample_digest", hex(checkpoint.state.counts.digest)) &&
         hdf5::write_long_text_attribute(file, "config", checkpoint.config) &&
         hdf5::write_long_text_attribute(file, "history", history_to_json(checkpoint.history)) &&
         hdf5::write_long_text_attribute(file, "graph", graph_to_json(checkpoint.graph)) && good;
  require(good, "an attribute");

  for (const auto& tensor : checkpoint.state.tensors)
    write_array(file, "/" + tensor.name, {tensor.rows, tensor.columns}, tensor.values.data(),
                hdf5::file_type<float>(), hdf5::memory_type<float>());
  write_array(file, "/losses", {std::ssize(checkpoint.state.losses)}, checkpoint.state.losses.data(),
              H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE);
  visit_standardization(checkpoint, [&](const std::string& name, const std::vector<double>& values) {
    if (!values.empty())
      write_array(file, "/" + name, {1, std::ssize(values)}, values.data(), H5T_IEEE_F64LE,
                  H5T_NATIVE_DOUBLE);
  });
  auto bytes = image_of(file);
  const auto block = user_block(bytes);
  std::copy(block.begin(), block.end(), bytes.begin());
  return bytes;
}

namespace {

// The names of all datasets.
std::vector<std::string> dataset_names(const hdf5::Handle& file) {
  std::vector<std::string> names;
  const auto one = [](hid_t, const char* name, const H5O_info_t* info, void* data) -> herr_t {
    if (info->type == H5O_TYPE_DATASET) static_cast<std::vector<std::string>*>(data)->emplace_back(name);
    return 0;
  };
  H5Ovisit(file.id(), H5_INDEX_NAME, H5_ITER_INC, one, &names);
  return names;
}

std::vector<std::int64_t> read_confusion(const std::string& list, const std::string& path) {
  const auto json = nlohmann::json::parse(list, nullptr, /*allow_exceptions=*/false);
  const auto counts = [](const auto& count) { return count.is_number_integer(); };
  if (!json.is_array() || !std::ranges::all_of(json, counts))
    refuse(path, fmt::format("its attribute {} is no list of counts", kConfusion));
  return json.get<std::vector<std::int64_t>>();
}

NamedTensor read_tensor(const hdf5::Handle& file, const std::string& name, const std::string& path) {
  const auto dataset = hdf5::open_dataset(file, "/" + name);
  if (dataset.shape.size() != 2 || !dataset.is_float()) refuse(path, name + " is no matrix of numbers");
  NamedTensor tensor{name, dataset.rows(), dataset.columns(), {}};
  tensor.values.resize(tensor.rows * tensor.columns);
  if (!hdf5::read_slab(dataset, hdf5::memory_type<float>(), {0, tensor.rows, tensor.columns},
                       tensor.values.data()))
    refuse(path, fmt::format("{} cannot be read: {}", name, hdf5::reason()));
  return tensor;
}

std::vector<double> read_losses(const hdf5::Handle& file, const std::string& path) {
  const auto dataset = hdf5::open_dataset(file, "/losses");
  if (dataset.shape.size() != 1) refuse(path, "losses are missing");
  std::vector<double> losses(dataset.rows());
  if (!losses.empty() && !hdf5::read_slab(dataset, H5T_NATIVE_DOUBLE, {0, dataset.rows(), 1}, losses.data()))
    refuse(path, fmt::format("losses cannot be read: {}", hdf5::reason()));
  return losses;
}

// A row of float64; empty where the file has none.
std::vector<double> read_row(const hdf5::Handle& file, const std::string& name, const std::string& path) {
  const auto dataset = hdf5::open_dataset(file, "/" + name);
  if (!dataset.exists()) return {};
  if (dataset.shape.size() != 2 || dataset.rows() != 1 || !dataset.is_float())
    refuse(path, name + " is no row of numbers");
  std::vector<double> values(dataset.columns());
  if (!hdf5::read_slab(dataset, H5T_NATIVE_DOUBLE, {0, 1, dataset.columns()}, values.data()))
    refuse(path, fmt::format("{} cannot be read: {}", name, hdf5::reason()));
  return values;
}

void read_graph(const std::string& text, GraphInfo& graph) {
  const auto json = nlohmann::json::parse(text);
  for (const auto& [name, number] : graph_numbers(graph)) *number = json.at(name);
  if (!json.contains("digests")) return;  // saved by a version before 0.2
  for (const auto& [name, digest] : json.at("digests").items())
    graph.content.datasets[name] = std::stoull(digest.get<std::string>(), nullptr, 16);
}

}  // namespace

Checkpoint checkpoint_from(const std::string& bytes, const std::string& path) {
  check_user_block(bytes, path);
  hdf5::silence();
  const auto access = in_memory(&bytes);
  const hdf5::Handle file(H5Fopen("checkpoint", H5F_ACC_RDONLY, access.id()), H5Fclose);
  if (!file.valid()) refuse(path, "is no HDF5 file behind its first 512 bytes");
  Checkpoint checkpoint;
  auto& state = checkpoint.state;
  const auto text = [&](const char* name) {
    std::string value;
    if (!hdf5::read_text_attribute(file, name, value))
      refuse(path, fmt::format("its attribute {} is missing", name));
    return value;
  };
  const auto read = [&]<class Value>(const char* name, Value& value) {
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
      state.test = read_test(task->metrics, read);
  // Those of earlier versions have none.
  if (H5Aexists(file.id(), kConfusion) > 0) state.confusion = read_confusion(text(kConfusion), path);
  for (const auto& name : dataset_names(file))
    if (name != "losses" && !name.starts_with(kFeatures))
      state.tensors.push_back(read_tensor(file, name, path));
  visit_standardization(checkpoint, [&](const std::string& name, std::vector<double>& values) {
    values = read_row(file, name, path);
  });
  state.losses = read_losses(file, path);
  checkpoint.config = text("config");
  try {
    state.counts.digest = std::stoull(text("sample_digest"), nullptr, 16);
    checkpoint.history = history_from_json(text("history"));
    read_graph(text("graph"), checkpoint.graph);
  } catch (const UserError& error) {
    refuse(path, error.what());
  } catch (const std::exception& error) {
    refuse(path, fmt::format("cannot be understood: {}", error.what()));
  }
  const auto& [mean, deviation] = checkpoint.standardization;
  if (mean.size() != deviation.size() || (!mean.empty() && std::ssize(mean) != checkpoint.graph.features))
    refuse(path, fmt::format("features/mean has {} columns, features/deviation {}, and the graph {}",
                             mean.size(), deviation.size(), checkpoint.graph.features));
  return checkpoint;
}

}  // namespace espalier
