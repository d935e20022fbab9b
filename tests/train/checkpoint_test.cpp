// Laws: what write_checkpoint writes, read_checkpoint gives back to the last bit; it takes no file
// with a byte changed, missing or added, and none of another kind, and says which file it is and
// what is wrong; each number and array has the name that h5py looks for. On one rank:
// tests/train/parallel_checkpoint_test.cpp has the laws of several.
#include "espalier/train/checkpoint.hpp"

#include <gtest/gtest.h>
#include <zlib.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <thread>

#include "espalier/file/hdf5.hpp"
#include "mpi_test.hpp"
#include "train/checkpoint_bytes.hpp"
#include "user_error.hpp"

namespace espalier {
namespace {

// Numbers that a decimal text of few digits, a float or a sum would change.
const std::vector<double> kAwkward = {0.1,
                                      1.0 / 3,
                                      -0.0,
                                      std::nextafter(1.0, 2.0),
                                      std::numeric_limits<double>::denorm_min(),
                                      std::numeric_limits<double>::max(),
                                      -123456789.12345679,
                                      6.02214076e23};

double awkward(std::int64_t k) {
  return kAwkward[static_cast<std::size_t>(k) % kAwkward.size()] / static_cast<double>(k / 8 + 1);
}

StageVolume volume(std::int64_t k) {
  return {k, (std::int64_t{1} << 53) + 1 + k, 7 * k, awkward(k), awkward(k + 3), 3 * k};
}

Metrics metrics_of(double accuracy, double macro_f1, std::int64_t vertices) {
  return {{{"accuracy", accuracy}, {"macro_f1", macro_f1}}, vertices};
}

EpochReport epoch_report(std::int64_t e) {
  EpochReport epoch;
  epoch.epoch = e;
  epoch.resumed_step = e % 3;
  epoch.loss = awkward(e);
  if (e % 2 == 0) epoch.train = metrics_of(awkward(e + 3), awkward(e + 4), 19 + e);
  if (e % 2 == 0) epoch.valid = metrics_of(awkward(e + 1), awkward(e + 2), 17 + e);
  epoch.counts = {0xfedcba9876543210u + static_cast<std::uint64_t>(e), e, (std::int64_t{1} << 60) + e, 3 * e};
  for (const char* stage :
       {"total", "sample", "fetch", "forward", "backward", "reduce", "optimizer", "evaluate"})
    epoch.seconds[stage] = {awkward(e), awkward(e + 1), awkward(e + 2)};
  for (const char* stage : {"sample", "fetch", "reduce", "evaluate"}) epoch.bytes[stage] = volume(e);
  for (const char* label : {"sample/ids", "sample/rows"}) epoch.steps[label] = volume(e + 1);
  if (e % 2 != 0) return epoch;
  epoch.counters = {{{"saved", "pruned", OverRanks::kSum, (std::int64_t{1} << 53) + 1},
                     {"saved", "kept", OverRanks::kSum, e},
                     {"saved", "history", OverRanks::kSum, -e}}};
  epoch.remarks = {{"saved", "where", R"([{"layer":1,"share":0.3}])"}};
  return epoch;
}

StateTensor tensor(const std::string& name, std::int64_t rows, std::int64_t columns) {
  Buffer<float> values;
  for (std::int64_t k = 0; k < rows * columns; ++k)
    values.push_back(static_cast<float>(awkward(k)) * static_cast<float>(name.size()));
  return tensor_with(name, rows, columns, std::move(values), {0, rows});
}

std::string bytes_of(const Checkpoint& checkpoint) {
  return checkpoint_bytes(test_world(), checkpoint);
}

Checkpoint from_bytes(const std::string& bytes) {
  return checkpoint_from(test_world(), bytes);
}

// Between two steps of epoch `epochs` + 1.
Checkpoint checkpoint_of(std::int64_t epochs, std::int64_t batches, bool best, bool test) {
  Checkpoint c;
  c.state.cursor = {epochs + 1, 40};
  for (const char* name :
       {"weights/layer1.weight", "weights/layer1/of/many.parts", "statistics/layer1.mean"}) {
    c.state.tensors.push_back(tensor(name, 3, 5));
    if (best) c.state.tensors.push_back(tensor(std::string("best/") + name, 3, 5));
  }
  c.state.tensors.push_back(tensor("optimizer/layer1.weight/first_moment", 1, 7));
  c.state.optimizer_steps = 123456789012345;
  c.state.best_metric = best ? 1.0 / 3 : -1;
  c.state.best_epoch = best ? epochs : 0;
  c.state.evaluations_without_gain = 2;
  if (test) c.state.test = metrics_of(0.1, std::nextafter(0.5, 1.0), 41);
  if (test) c.state.confusion = {3, (std::int64_t{1} << 60) + 1, 0, 7};
  for (std::int64_t k = 0; k < batches; ++k) c.state.losses.push_back(awkward(k));
  c.state.counts = {0x8000000000000001u, batches, (std::int64_t{1} << 60) + 1, 99};
  if (best)
    c.state.counters = {{"saved_pruned", 0}, {"saved_kept", (std::int64_t{1} << 60) + 1}, {"a_counter", -5}};
  for (std::int64_t e = 1; e <= epochs; ++e) c.epochs.push_back(epoch_report(e));
  c.config = "[train]\nepochs = 7 # \"quoted\" \\ and \xc3\xa9\n";
  c.seed = -5;
  c.ranks = 3;
  c.graph.nodes = (std::int64_t{1} << 40) + 1;
  c.graph.edges = 2, c.graph.features = 8, c.graph.classes = 4;
  if (test) c.standardization = {kAwkward, {kAwkward.rbegin(), kAwkward.rend()}};
  c.graph.train = 5, c.graph.valid = 6, c.graph.test = 7;
  return c;
}

template <class T>
std::vector<std::uint8_t> bits(const T& values) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(values.data());
  return {data, data + values.size() * sizeof(values[0])};
}
std::uint64_t bits(double value) {
  return std::bit_cast<std::uint64_t>(value);
}

void expect_equal(const std::optional<Metrics>& a, const std::optional<Metrics>& b) {
  ASSERT_EQ(a.has_value(), b.has_value());
  if (!a) return;
  EXPECT_EQ(bits(a->find("accuracy").value()), bits(b->find("accuracy").value()));
  EXPECT_EQ(bits(a->find("macro_f1").value()), bits(b->find("macro_f1").value()));
  EXPECT_EQ(a->vertices, b->vertices);
}

void expect_equal(const SampleCounts& a, const SampleCounts& b) {
  EXPECT_EQ(a.digest, b.digest);
  EXPECT_EQ(a.batches, b.batches);
  EXPECT_EQ(a.sampled_edges, b.sampled_edges);
  EXPECT_EQ(a.input_rows, b.input_rows);
}

void expect_equal(const std::map<std::string, StageVolume>& a, const std::map<std::string, StageVolume>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [label, volume_of_a] : a) {
    const auto& other = b.at(label);
    EXPECT_EQ(volume_of_a.messages, other.messages) << label;
    EXPECT_EQ(volume_of_a.rounds, other.rounds) << label;
    EXPECT_EQ(volume_of_a.total, other.total) << label;
    EXPECT_EQ(volume_of_a.max_rank, other.max_rank) << label;
    EXPECT_EQ(bits(volume_of_a.predicted_messages), bits(other.predicted_messages)) << label;
    EXPECT_EQ(bits(volume_of_a.predicted), bits(other.predicted)) << label;
  }
}

void expect_equal(const EpochReport& a, const EpochReport& b) {
  EXPECT_EQ(a.epoch, b.epoch);
  EXPECT_EQ(a.resumed_step, b.resumed_step);
  ASSERT_EQ(a.loss.has_value(), b.loss.has_value());
  if (a.loss) EXPECT_EQ(bits(*a.loss), bits(*b.loss));
  expect_equal(a.train, b.train);
  expect_equal(a.valid, b.valid);
  expect_equal(a.counts, b.counts);
  ASSERT_EQ(a.seconds.size(), b.seconds.size());
  for (const auto& [stage, seconds] : a.seconds) {
    EXPECT_EQ(bits(seconds.min), bits(b.seconds.at(stage).min)) << stage;
    EXPECT_EQ(bits(seconds.mean), bits(b.seconds.at(stage).mean)) << stage;
    EXPECT_EQ(bits(seconds.max), bits(b.seconds.at(stage).max)) << stage;
  }
  expect_equal(a.bytes, b.bytes);
  expect_equal(a.steps, b.steps);
  EXPECT_EQ(a.counters, b.counters);
  ASSERT_EQ(a.remarks.size(), b.remarks.size());
  for (std::size_t k = 0; k < a.remarks.size(); ++k) {
    EXPECT_EQ(a.remarks[k].group + "/" + a.remarks[k].name, b.remarks[k].group + "/" + b.remarks[k].name);
    EXPECT_EQ(a.remarks[k].json, b.remarks[k].json);
  }
}

// Tensors by name: their order is the file's.
void expect_equal(const std::vector<StateTensor>& a, const std::vector<StateTensor>& b) {
  std::map<std::string, const StateTensor*> of_b;
  for (const auto& one : b) of_b.emplace(one.name, &one);
  ASSERT_EQ(a.size(), of_b.size());
  for (const auto& one : a) {
    ASSERT_TRUE(of_b.contains(one.name)) << one.name;
    const auto& other = *of_b.at(one.name);
    EXPECT_EQ(one.rows, other.rows) << one.name;
    EXPECT_EQ(one.columns, other.columns) << one.name;
    EXPECT_EQ(bits(one.all()), bits(other.all())) << one.name;
  }
}

void expect_equal(const Checkpoint& a, const Checkpoint& b) {
  EXPECT_EQ(a.state.cursor, b.state.cursor);
  expect_equal(a.state.tensors, b.state.tensors);
  EXPECT_EQ(a.state.optimizer_steps, b.state.optimizer_steps);
  EXPECT_EQ(bits(a.state.best_metric), bits(b.state.best_metric));
  EXPECT_EQ(a.state.best_epoch, b.state.best_epoch);
  EXPECT_EQ(a.state.evaluations_without_gain, b.state.evaluations_without_gain);
  expect_equal(a.state.test, b.state.test);
  EXPECT_EQ(a.state.confusion, b.state.confusion);
  EXPECT_EQ(bits(a.state.losses), bits(b.state.losses));
  expect_equal(a.state.counts, b.state.counts);
  EXPECT_EQ(a.state.counters, b.state.counters);
  EXPECT_EQ(bits(a.standardization.mean), bits(b.standardization.mean));
  EXPECT_EQ(bits(a.standardization.deviation), bits(b.standardization.deviation));
  EXPECT_EQ(a.config, b.config);
  EXPECT_EQ(a.seed, b.seed);
  EXPECT_EQ(a.ranks, b.ranks);
  EXPECT_EQ(a.graph.nodes, b.graph.nodes);
  EXPECT_EQ(a.graph.edges, b.graph.edges);
  EXPECT_EQ(a.graph.features, b.graph.features);
  EXPECT_EQ(a.graph.classes, b.graph.classes);
  EXPECT_EQ(a.graph.train, b.graph.train);
  EXPECT_EQ(a.graph.valid, b.graph.valid);
  EXPECT_EQ(a.graph.test, b.graph.test);
  ASSERT_EQ(a.epochs.size(), b.epochs.size());
  for (std::size_t e = 0; e < a.epochs.size(); ++e) {
    SCOPED_TRACE(e);
    expect_equal(a.epochs[e], b.epochs[e]);
  }
}

TEST(Checkpoint, ComesBackToTheLastBit) {
  for (const std::int64_t epochs : {0, 1, 9})
    for (const std::int64_t batches : {0, 1, 23})
      for (const bool best : {false, true}) {
        SCOPED_TRACE(fmt::format("{} epochs, {} batches, best {}", epochs, batches, best));
        const auto whole = checkpoint_of(epochs, batches, best, best && batches > 0);
        expect_equal(from_bytes(bytes_of(whole)), whole);
      }
}

TEST(Checkpoint, EpochsOfEarlierVersionsHaveNoTrainingMetrics) {
  auto epochs = checkpoint_of(4, 0, false, false).epochs;
  const auto text = epochs_to_json(epochs);
  for (auto& epoch : epochs) epoch.train.reset();
  const auto former = epochs_to_json(epochs);
  EXPECT_EQ(former.find("train"), std::string::npos);
  EXPECT_NE(text, former);
  const auto read = epochs_from_json(former);
  ASSERT_EQ(read.size(), epochs.size());
  for (std::size_t e = 0; e < read.size(); ++e) expect_equal(read[e], epochs[e]);
}

TEST(Checkpoint, TwiceWrittenIsTheSameBytes) {
  const auto bytes = bytes_of(checkpoint_of(3, 5, true, true));
  // HDF5 notes seconds where it is let
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  EXPECT_EQ(bytes_of(checkpoint_of(3, 5, true, true)), bytes);
}

TEST(Checkpoint, HoldsAHistoryOfThreeThousandEpochs) {
  const auto whole = checkpoint_of(3000, 4, true, true);
  const auto bytes = bytes_of(whole);
  EXPECT_GT(bytes.size(), std::size_t{3} << 20) << "the case must be larger than an attribute of HDF5 may be";
  expect_equal(from_bytes(bytes), whole);
}

// What checkpoint_from says against these bytes; empty: it takes them.
std::string refusal_of_bytes(const std::string& bytes) {
  return message_of(ExitCode::kInput, [&] { from_bytes(bytes); });
}

void expect_refused(const std::string& bytes, const std::string& words) {
  const auto said = refusal_of_bytes(bytes);
  EXPECT_TRUE(said.starts_with(path_of_checkpoint_bytes() + ": ")) << said;
  expect_words(said, {words});
}

// A byte in `stride`, from one that the seed picks; all of those at both ends.
void expect_changed_bytes_to_be_found(std::size_t stride) {
  const auto seed = test_seed(1);
  SCOPED_TRACE(fmt::format("seed {}", seed));
  auto bytes = bytes_of(checkpoint_of(2, 5, true, true));
  ASSERT_EQ(refusal_of_bytes(bytes), "");
  std::size_t taken = 0;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    const bool at_an_end = at < 600 || at + 50 > bytes.size();
    if (!at_an_end && (at + seed) % stride != 0) continue;
    const char was = bytes[at];
    bytes[at] = static_cast<char>(was ^ (1 << ((at * 2654435761u + seed) >> 7) % 8));
    const auto said = refusal_of_bytes(bytes);
    if (!said.starts_with(path_of_checkpoint_bytes() + ": is ")) {
      ++taken;
      EXPECT_GT(taken, 5u) << "byte " << at << " changed: " << said;
    }
    bytes[at] = was;
  }
  EXPECT_EQ(taken, 0u) << "of " << bytes.size() << " bytes";
  EXPECT_EQ(refusal_of_bytes(bytes), "");
}

TEST(Checkpoint, ChangedBytesAreFound) {
  expect_changed_bytes_to_be_found(9);
}

TEST(Checkpoint, LongEveryChangedByteIsFound) {
  expect_changed_bytes_to_be_found(1);
}

TEST(Checkpoint, SaysWhatIsWrong) {
  const auto bytes = bytes_of(checkpoint_of(2, 5, true, true));
  auto changed = bytes;
  changed[bytes.size() / 2] = static_cast<char>(changed[bytes.size() / 2] ^ 4);
  expect_refused(changed, "is damaged: its checksum");
  for (const auto length : {std::size_t{512}, std::size_t{513}, bytes.size() / 2, bytes.size() - 1})
    expect_refused(bytes.substr(0, length),
                   fmt::format("is damaged: it has {} bytes and was written with {}", length, bytes.size()));
  expect_refused(bytes + '\0', fmt::format("is damaged: it has {} bytes", bytes.size() + 1));
  expect_refused(bytes + bytes, fmt::format("is damaged: it has {} bytes", 2 * bytes.size()));
  for (const std::size_t length : {0, 1, 20, 30, 511})
    expect_refused(bytes.substr(0, length), "is no checkpoint");
  expect_refused(bytes.substr(512), "is no checkpoint");  // a plain HDF5 file
  expect_refused(std::string(100000, '\0'), "is no checkpoint");
  expect_refused(std::string(100000, 'x'), "is no checkpoint");
}

// The text before the file with a length and a checksum that fit: damage that only HDF5 can see.
std::string seal(std::string bytes) {
  const auto crc =
      crc32(0, reinterpret_cast<const Bytef*>(bytes.data()) + 512, static_cast<uInt>(bytes.size() - 512));
  auto block = fmt::format("espalier-checkpoint 1\nbytes {}\ncrc32 {:08x}\n", bytes.size(), crc);
  block.resize(512, '\0');
  return bytes.replace(0, 512, block);
}

// The bytes after `edit` changed the file by HDF5.
std::string edited(const std::string& bytes, const std::function<void(const hdf5::Handle&)>& edit) {
  const auto path = test_folder("checkpoint") + "/edited.h5";
  std::ofstream(path, std::ios::binary) << bytes;
  {
    const hdf5::Handle file(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
    EXPECT_TRUE(file.valid());
    edit(file);
  }
  return seal(read_file(path));
}

TEST(Checkpoint, AFileOfTheFirstVersionIsRefusedForItsRandomNumbers) {
  expect_refused(
      read_file("tests/train/checkpoint_of_one_rank.h5"),
      "is of version 1; this program reads version 2: its run drew other random numbers; begin anew "
      "(run.restart = \"never\"), or infer from its weights.h5");
}

TEST(Checkpoint, WhatItsTextSaysAndHDF5DoesNotIsRefused) {
  const auto bytes = bytes_of(checkpoint_of(2, 5, true, true));
  EXPECT_EQ(seal(bytes), bytes) << "the user block is as checkpoint.hpp says";
  expect_refused(seal(std::string(5000, 'x')), "no HDF5 file");
  EXPECT_EQ(refusal_of_bytes(edited(bytes, [](const auto&) {})), "");
  expect_refused(edited(bytes,
                        [](const auto& file) {
                          H5Adelete(file.id(), "version");
                          hdf5::write_integer_attribute(file, "version", 3);
                        }),
                 "is of version 3; this program reads version 2");
  for (const char* name : {"version", "epoch", "step", "ranks", "seed", "optimizer_steps", "best_epoch",
                           "best_metric", "evaluations_without_gain", "test_vertices", "sample_digest",
                           "batches", "sampled_edges", "input_rows", "config", "history", "graph"})
    expect_refused(edited(bytes, [&](const auto& file) { EXPECT_GE(H5Adelete(file.id(), name), 0) << name; }),
                   fmt::format("attribute {} is missing", name));
  // A metric that is new since then.
  EXPECT_EQ(refusal_of_bytes(edited(bytes, [](const auto& file) { H5Adelete(file.id(), "test_macro_f1"); })),
            "");
  for (const char* name : {"history", "graph", "sample_digest"})
    expect_refused(edited(bytes,
                          [&](const auto& file) {
                            H5Adelete(file.id(), name);
                            hdf5::write_text_attribute(file, name, "[[{");
                          }),
                   name == std::string("history") ? "list of epochs"
                   : name == std::string("graph") ? "cannot be understood"
                                                  : "not 16 hex digits");
  expect_refused(edited(bytes, [](const auto& file) { hdf5::remove(file, "/features/mean"); }),
                 "features/mean has 0 columns, features/deviation 8");
  EXPECT_EQ(refusal_of_bytes(edited(bytes, [](const auto& file) { hdf5::remove(file, "/features"); })), "")
      << "earlier versions wrote none";
  expect_refused(edited(bytes, [](const auto& file) { hdf5::remove(file, "/losses"); }),
                 "there is no dataset /losses");
  expect_refused(edited(bytes,
                        [](const auto& file) {
                          hdf5::remove(file, "/weights/layer1.weight");
                          hdf5::create_dataset(file, "/weights/layer1.weight", H5T_STD_I64LE, {3, 5});
                        }),
                 "weights/layer1.weight is no matrix of numbers");
}

}  // namespace
}  // namespace espalier
