// The main of every C++ test: GoogleTest under MPI.
//
// Every rank runs every test. Ranks above 0 report only failures; after each test a listener
// reduces the failures over all ranks, so rank 0's result is everyone's. Use EXPECT, not ASSERT,
// before a collective: a rank that leaves a test early would make the others wait.
#include <gtest/gtest.h>
#include <mpi.h>

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "mpi_test.hpp"

namespace {

espalier::Session* session_of_tests = nullptr;

class AgreeOnFailure : public testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo& info) override {
    const int failed_here = info.result()->Failed() ? 1 : 0;
    const int failed = espalier::test_world().all_reduce(failed_here, espalier::Reduction::kSum, "test");
    if (failed > 0 && failed_here == 0 && espalier::test_world().rank() == 0)
      ADD_FAILURE() << info.test_suite_name() << "." << info.name() << " failed on " << failed
                    << " other rank(s)";
  }
};

class ReportFailures : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& part) override {
    if (!part.failed()) return;
    std::printf("rank %d: %s:%d: %s\n", espalier::test_world().rank(),
                part.file_name() ? part.file_name() : "?", part.line_number(), part.summary());
    std::fflush(stdout);
  }
};

// A room's tests may be one program: --file=draw_test.cpp runs those of a file. They join what
// --gtest_filter leaves out.
void keep_tests_of(const std::string& file) {
  const auto& all = *testing::UnitTest::GetInstance();
  std::string kept;
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const auto& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const auto& test = *suite.GetTestInfo(t);
      const std::string path = test.file();
      if (path.substr(path.rfind('/') + 1) == file)
        kept += ":" + std::string(suite.name()) + "." + test.name();
    }
  }
  if (kept.empty()) throw std::invalid_argument("no test is of " + file);
  auto& filter = testing::GTEST_FLAG(filter);
  const auto left_out = filter.find('-');
  filter = kept.substr(1) + (left_out == std::string::npos ? "" : filter.substr(left_out));
}

}  // namespace

const espalier::Communicator& espalier::test_world() {
  return session_of_tests->world();
}

int main(int argc, char** argv) {
  espalier::Session session(&argc, &argv);
  session_of_tests = &session;
  if (session.world().rank() > 0) testing::GTEST_FLAG(output) = "";
  testing::InitGoogleTest(&argc, argv);
  for (const std::string_view argument : std::span(argv, static_cast<std::size_t>(argc)))
    if (argument.starts_with("--file=")) keep_tests_of(std::string(argument.substr(7)));
  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  if (session.world().rank() > 0) {
    testing::GTEST_FLAG(output) = "";
    delete listeners.Release(listeners.default_result_printer());
    delete listeners.Release(listeners.default_xml_generator());
    listeners.Append(new ReportFailures);
  }
  listeners.Append(new AgreeOnFailure);
  const int result = RUN_ALL_TESTS();
  return session.world().all_reduce(result, espalier::Reduction::kMax, "test");
}
