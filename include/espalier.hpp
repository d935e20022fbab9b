// Espalier for programs in C++: espalier.h with owners and exceptions. Header-only, C++17; link
// libespalier.so. What is collective, shapes and units stand in espalier.h.
//
//     espalier::c::Job job({"graph.file=graph.h5", "train.epochs=3"});
//     for (auto loader = job.loader(); auto batch = loader.next();) use(batch->view());
#pragma once

#include <espalier.h>

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace espalier::c {

/// What a call said, with its code.
class Error : public std::runtime_error {
 public:
  explicit Error(int code) : std::runtime_error(espalier_error()), code_(code) {}
  int code() const { return code_; }

 private:
  int code_;
};

/// Throws what a call returned, if that is an error; false: ESPALIER_END, or ESPALIER_STOPPED.
inline bool check(int code) {
  if (code > 0) throw Error(code);
  return code == ESPALIER_OK;
}

/// An item of a loader, whose arrays stay as long as it.
class Batch {
 public:
  explicit Batch(espalier_batch* batch) : batch_(batch, espalier_batch_free) {
    view_.struct_size = sizeof view_;
    check(espalier_batch_look(batch, &view_));
  }
  const espalier_batch_view& view() const { return view_; }
  std::uint64_t digest() const { return espalier_batch_digest(batch_.get()); }
  /// Of one on a GPU, before a cudaStream_t reads it.
  void wait(void* stream) const { check(espalier_batch_wait(batch_.get(), stream)); }

 private:
  std::unique_ptr<espalier_batch, void (*)(espalier_batch*)> batch_;
  espalier_batch_view view_ = {};
};

/// Goes before its job.
class Loader {
 public:
  explicit Loader(espalier_loader* loader) : loader_(loader, espalier_loader_close) {}
  espalier_loader_facts facts() const {
    espalier_loader_facts facts = {};
    facts.struct_size = sizeof facts;
    check(espalier_loader_facts_of(loader_.get(), &facts));
    return facts;
  }
  void seek(std::int64_t epoch, std::int64_t step) {
    check(espalier_loader_seek(loader_.get(), epoch, step));
  }
  /// Nothing: there is none.
  std::optional<Batch> next() {
    espalier_batch* batch = nullptr;
    if (!check(espalier_loader_next(loader_.get(), &batch))) return {};
    return Batch(batch);
  }

 private:
  std::unique_ptr<espalier_loader, int (*)(espalier_loader*)> loader_;
};

struct LoaderOptions {
  std::string split = {};
  std::optional<std::vector<std::int64_t>> vertices = {};
  std::vector<std::int64_t> fanout = {};
  std::int64_t batch_size = 0, epochs = 0, ahead = -1;
};

class Job {
 public:
  /// `keys`: "section.key=value"; `path`: of an input file, or empty.
  explicit Job(const std::vector<std::string>& keys, const std::string& path = {})
      : job_(nullptr, espalier_close) {
    std::vector<const char*> texts;
    for (const auto& key : keys) texts.push_back(key.c_str());
    espalier_open_options options = {};
    options.struct_size = sizeof options;
    if (!path.empty()) options.config_path = path.c_str();
    options.keys = texts.data();
    options.key_count = static_cast<std::int64_t>(texts.size());
    espalier_job* job = nullptr;
    check(espalier_open(&options, &job));
    job_.reset(job);
  }
  /// JSON.
  std::string describe() const { return espalier_describe(job_.get()); }
  Loader loader(const LoaderOptions& wanted = {}) {
    espalier_loader_options options = {};
    options.struct_size = sizeof options;
    if (!wanted.split.empty()) options.split = wanted.split.c_str();
    if (wanted.vertices) {
      options.vertices = wanted.vertices->data();
      options.vertex_count = static_cast<std::int64_t>(wanted.vertices->size());
    }
    if (!wanted.fanout.empty()) {
      options.fanout = wanted.fanout.data();
      options.fanout_count = static_cast<std::int64_t>(wanted.fanout.size());
    }
    options.batch_size = wanted.batch_size;
    options.epochs = wanted.epochs;
    options.ahead = wanted.ahead;
    espalier_loader* loader = nullptr;
    check(espalier_loader_open(job_.get(), &options, &loader));
    return Loader(loader);
  }
  double sum(double value) {
    check(espalier_sum(job_.get(), &value, 1));
    return value;
  }

  /// Nothing: training is done.
  std::optional<espalier_epoch> train_epoch() {
    auto epoch = no_epoch();
    if (!check(espalier_train_epoch(job_.get(), &epoch))) return {};
    return epoch;
  }
  void end_training() { check(espalier_train_end(job_.get())); }
  espalier_epoch evaluate() {
    auto epoch = no_epoch();
    check(espalier_evaluate(job_.get(), &epoch));
    return epoch;
  }
  /// [vertices, outputs], `outputs` of describe().
  std::vector<float> infer(const std::vector<std::int64_t>& vertices, std::int64_t outputs) {
    std::vector<float> rows(vertices.size() * static_cast<std::size_t>(outputs));
    check(
        espalier_infer(job_.get(), vertices.data(), static_cast<std::int64_t>(vertices.size()), rows.data()));
    return rows;
  }
  /// By name; rows one after another.
  std::map<std::string, std::vector<float>> weights() {
    std::map<std::string, std::vector<float>> all;
    espalier_tensor tensor = {};
    tensor.struct_size = sizeof tensor;
    for (std::int64_t k = 0; check(espalier_tensor_at(job_.get(), k, &tensor)); ++k) {
      std::vector<float> values(static_cast<std::size_t>(tensor.rows * tensor.columns));
      const std::string name = tensor.name;
      check(espalier_tensor_read(job_.get(), k, values.data()));
      all.emplace(name, std::move(values));
    }
    return all;
  }

 private:
  static espalier_epoch no_epoch() {
    espalier_epoch epoch = {};
    epoch.struct_size = sizeof epoch;
    return epoch;
  }

  std::unique_ptr<espalier_job, int (*)(espalier_job*)> job_;
};

}  // namespace espalier::c
