// Epochs of several configurations over one graph that is read once: for `make gpu-check`, which
// compares precisions and places of features, and for whom reading the graph takes longer than an
// epoch.
//
//     epochs --out FILE graph.file=GRAPH KEY=VALUE... --variant NAME KEY=VALUE... [--variant ...]
//
// Keys before the first --variant are of all. FILE becomes {NAME: report.json of that training},
// and is written anew after each variant; of one that cannot run {"error": why}. The matrix is
// read once; targets, and rows in another form (graph.feature_bits), again for each. Losses and
// samples are those of `espalier train`.
#include <cstdio>
#include <cstring>
#include <string>
#include <variant>
#include <vector>

#include "espalier/base/text.hpp"
#include "espalier/comm/session.hpp"
#include "espalier/job/training_on_gpu.hpp"
#include "espalier/train/trainer.hpp"

using namespace espalier;

namespace {

struct Variant {
  std::string name;
  std::vector<std::string> keys;
};

struct Arguments {
  std::string out;
  std::vector<std::string> keys;
  std::vector<Variant> variants;
};

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const auto has_value = i + 1 < argc;
    if (std::strcmp(argv[i], "--out") == 0 && has_value)
      arguments.out = argv[++i];
    else if (std::strcmp(argv[i], "--variant") == 0 && has_value)
      arguments.variants.push_back({argv[++i], {}});
    else
      (arguments.variants.empty() ? arguments.keys : arguments.variants.back().keys).push_back(argv[i]);
  }
  if (arguments.out.empty() || arguments.variants.empty())
    usage_error("{}: --out FILE and --variant NAME are missing", argv[0]);
  return arguments;
}

// What of [graph] and [grid] decides the matrix; it must be the same for all.
std::string matrix_keys(const Config& config) {
  return fmt::format("{} {} {} {} {} {}", config.graph.file, config.graph.target, config.graph.order,
                     config.graph.cut, config.grid.topology, config.model.kind);
}

template <class Index>
class Epochs {
 public:
  // Takes over the matrix of its first job, whose grid must stay.
  explicit Epochs(Job first) : first_(std::move(first)), matrix_(read_model_matrix<Index>(first_)) {}

  std::string report_of(const Communicator& world, const Config& config) {
    if (matrix_keys(config) != matrix_keys(first_.asked))
      usage_error("variants of a file, target, order, topology or kind of layer read another matrix");
    auto job = open_job(world, config, JobKind::kTrain);
    auto matrix = matrix_;
    matrix.grid = &job.matrix_grid();
    auto targets = std::unique_ptr<const Targets>(
        read_targets(*job.grid, *job.file, job.owners.blocks, job.config, job.owners.groups.get()));
    auto features = read_job_features(job);
    auto edges = read_job_edges(job);
    job.standardization = features.standard;
    return where_it_computes(job, [&]<class Space>(const Space& space) {
      const TrainingSetOver<Index, Space> set(job, space, std::move(matrix), std::move(features),
                                              std::move(edges), std::move(targets));
      return train(job, space, set.lent());
    });
  }

 private:
  template <class Space>
  static std::string train(const Job& job, const Space& space, const TrainingJobOn<Space>& training) {
    TrainerOn<Space> trainer(space, training);
    auto report = start_report(job, "train", training.sampler.schedules());
    trainer.train({.on_epoch = [&](const EpochReport& epoch) { report.epochs.push_back(epoch); }});
    report.weights_digest = hex(trainer.weights_digest());
    measure_peak_memory(job, report);
    return to_json(report);
  }

  Job first_;
  DistCsr<Index> matrix_;
};

std::string quoted(const std::string& words) {
  std::string text = "\"";
  for (const char c : words) {
    if (c == '"' || c == '\\') text += '\\';
    text += c == '\n' ? ' ' : c;
  }
  return text + '"';
}

void run(const Communicator& world, const Arguments& arguments, const char* program) {
  const auto config_of = [&](const Variant& variant) {
    auto keys = arguments.keys;
    keys.insert(keys.end(), variant.keys.begin(), variant.keys.end());
    return parse_config("", program, keys);
  };
  auto first = open_job(world, parse_config("", program, arguments.keys), JobKind::kTrain);
  with_index_type(first.graph.columns, [&](auto index) {
    Epochs<decltype(index)> epochs(std::move(first));
    std::string reports;
    for (const auto& variant : arguments.variants) {
      std::string report;
      try {
        report = epochs.report_of(world, config_of(variant));
      } catch (const UserError& error) {
        report = "{\"error\": " + quoted(error.what()) + "}";
      }
      reports += (reports.empty() ? "" : ",\n") + quoted(variant.name) + ": " + report;
      if (world.rank() == 0) write_file(arguments.out, "{" + reports + "}\n");
    }
  });
}

}  // namespace

int main(int argc, char** argv) {
  Session session(&argc, &argv);
  try {
    run(session.world(), parse(argc, argv), argv[0]);
  } catch (const UserError& error) {
    if (session.world().rank() == 0) std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.code());
  }
}
