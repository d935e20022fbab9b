// ranks: 1 2 4
// Laws of what a run writes, in a program of one's own: a report that no file takes is printed
// where somebody prints; a job says nothing but to its listener, on rank 0. (Who has the folder,
// and what the next one finds there: tests/app/output_test.py and job_test.py.)
#include "espalier/job/run_output.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "espalier/graph/generate.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

namespace fs = std::filesystem;

struct OutputOfTest {
  fs::path path = test_folder("run-output");

  Config config(const std::string& threads = "1") const {
    return parse_config(
        "", "a test",
        {"graph.file=in-memory", "run.device=\"cpu\"", "run.threads=" + threads, "sampler.fanout=[4, 3]",
         "sampler.batch_size=20", "model.layers=2", fmt::format("output.dir=\"{}\"", path.string())});
  }
};

struct JobOfTest {
  hdf5::WrittenBytes graph;
  Job job;
  explicit JobOfTest(const Config& config, const log::Listener& listener = {})
      : job(open(config, listener)) {}

  Job open(const Config& config, const log::Listener& listener) {
    const auto self = test_world().split(test_world().rank(), 0);
    generate_planted(self, {.nodes = 100, .degree = 4, .homophily = 0.8},
                     {.features = 5, .classes = 3, .seed = 2}, graph);
    const InMemory memory = {graph};
    return open_job(test_world(), config, JobKind::kSample, {}, {.listener = listener}, &memory);
  }
};

TEST(RunOutput, AReportThatNoFileTakesIsPrinted) {
  const OutputOfTest folder;
  RunOutput output(test_world(), folder.config(), false);
  JobOfTest of(folder.config());
  output.start(of.job);
  if (test_world().rank() == 0) fs::create_directory(folder.path / "report.json");
  const auto report = start_report(of.job, "sample", {});
  std::string printed;
  const auto words_of = [&](const PrintReport& print) -> std::string {
    try {
      output.write(report, {}, print);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  const auto alone = words_of({});
  EXPECT_NE(alone.find("cannot write"), alone.npos) << alone;
  EXPECT_EQ(alone.find("copy it from there"), alone.npos) << alone;
  const auto heard = words_of([&](const std::string&, const std::string& text) {
    printed += text;
    return "a page";
  });
  EXPECT_NE(heard.find("its report is on a page: copy it from there"), heard.npos) << heard;
  EXPECT_EQ(printed, test_world().rank() == 0 ? to_json(report) : "");
}

TEST(RunOutput, AJobTellsItsListenerOnRank0Alone) {
  const OutputOfTest folder;
  setenv("OMP_NUM_THREADS", "many", 1);
  std::vector<std::string> heard;
  testing::internal::CaptureStderr();
  const JobOfTest silent(folder.config("\"auto\""));
  const JobOfTest of(folder.config("\"auto\""), [&](log::Level level, std::string_view words) {
    if (level == log::Level::kWarning) heard.emplace_back(words);
  });
  const auto printed = testing::internal::GetCapturedStderr();
  unsetenv("OMP_NUM_THREADS");
  EXPECT_EQ(printed, "");
  EXPECT_EQ(heard.size(), test_world().rank() == 0 ? 1 : 0);
  for (const auto& words : heard)
    EXPECT_NE(words.find("OMP_NUM_THREADS = \"many\" is no number of threads"), words.npos) << words;
}

}  // namespace
}  // namespace espalier
