// The main of every C++ test: GoogleTest under MPI.
//
// Every rank runs every test. Ranks above 0 report only failures; after each test a listener
// reduces the failures over all ranks, so rank 0's result is everyone's. Use EXPECT, not ASSERT,
// before a collective: a rank that leaves a test early would make the others wait.
#include <gtest/gtest.h>
#include <mpi.h>

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

}  // namespace

const espalier::Communicator& espalier::test_world() {
  return session_of_tests->world();
}

int main(int argc, char** argv) {
  espalier::Session session(&argc, &argv);
  session_of_tests = &session;
  if (session.world().rank() > 0) testing::GTEST_FLAG(output) = "";
  testing::InitGoogleTest(&argc, argv);
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
