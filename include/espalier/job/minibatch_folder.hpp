// The folder of `espalier sample --write`: every minibatch of the epochs, for programs that train
// on them elsewhere.
//
//     minibatches.json         what they are and in which parts they lie; written last: a folder
//                              without it is not finished
//     minibatches-00000.bin    those that rank 0 kept (sample/minibatch_file.hpp), and so on
//
// Which part a batch lies in depends on the grid, what a record holds does not.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "espalier/base/output_file.hpp"
#include "espalier/base/output_lock.hpp"
#include "espalier/job/job.hpp"
#include "espalier/sample/examples.hpp"
#include "espalier/sample/minibatch_file.hpp"
#include "espalier/train/report.hpp"
#include "espalier/train/targets.hpp"

namespace espalier {

/// The labels of the seeds of sampled batches, or their links, where the graph has them.
class JobLabels {
 public:
  /// Collective, while the graph file is open, whose labels, or links, the check of a job (kWrite)
  /// has let through; a graph may have no labels.
  explicit JobLabels(const Job& job);

  /// The job's examples, whose label_indices of() reads.
  const ExampleSource& examples() const { return *examples_; }
  /// Of the seeds of a batch, as long as both live and until it is called again. Local.
  SeedLabels of(const SeedBatch& batch);
  SeedLabels of(const SeedBatch&&) = delete;
  /// "classes", "labels", "links", or "none".
  const char* kind() const { return kind_; }

 private:
  std::unique_ptr<Targets> targets_;
  Buffer<std::int32_t> places_;  ///< of training vertices in their list, where they have several
  std::unique_ptr<ExampleSource> examples_;
  const char* kind_ = "none";
  std::vector<std::uint8_t> several_;
};

class MinibatchFolder {
 public:
  /// Collective. Makes the folder and takes its lock, but where it is output.dir, whose lock the
  /// caller holds. Throws UserError(kUsage) when it holds finished minibatches that may not be
  /// replaced, is in use, or cannot be written to.
  MinibatchFolder(const Communicator& world, const std::string& path, const std::string& output_dir,
                  bool overwrite);
  /// Removes this rank's part unless commit() succeeded.
  ~MinibatchFolder();
  MinibatchFolder(const MinibatchFolder&) = delete;
  MinibatchFolder& operator=(const MinibatchFolder&) = delete;

  /// Collective. Removes what an earlier run has written here, and opens the parts.
  void begin();
  /// Adds a minibatch that this rank keeps. Local; check() tells what went wrong.
  void add(std::int64_t epoch, const Minibatch& minibatch, const SeedLabels& labels);
  /// Collective. Throws UserError(kUsage) on every rank when a write has failed on any; parts are
  /// removed then.
  void check();
  /// Collective, once all is added. Throws UserError(kUsage) as check() does.
  void commit(const Job& job, const RunReport& report, const JobLabels& labels);

 private:
  struct Part {
    explicit Part(const std::string& path) : watched(path), file(path) {}
    TemporaryFile watched;
    MinibatchFile file;
  };
  std::string path_of(const std::string& name) const { return folder_ + "/" + name; }
  void attempt(const std::function<void()>& write);
  void agree_or_remove(const std::function<void()>& work);
  void remove_earlier() const;
  void check_parts(std::span<const std::int64_t> bytes) const;

  const Communicator& world_;
  std::string folder_, part_name_;
  std::unique_ptr<OutputLock> lock_;  ///< on rank 0
  std::unique_ptr<Part> part_;
  std::string problem_;  ///< of this rank's part
};

}  // namespace espalier
