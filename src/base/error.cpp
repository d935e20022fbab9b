#include "espalier/base/error.hpp"

#include <omp.h>
#include <unistd.h>

#include <cstdlib>

#include "espalier/base/final_message.hpp"
#include "espalier/base/output_file.hpp"
#include "espalier/base/signals.hpp"
#include "espalier/base/text.hpp"

namespace espalier {

FailureContext& failure_context() {
  static FailureContext context;
  return context;
}

namespace {
[[noreturn]] void end_job(const std::string& text, ExitCode code) {
  constexpr unsigned kPatience = 30;  // seconds
  note_leaving();
  remove_temporary_files();
  write_to_stderr(text);  // at once, so that lines of several failing ranks do not mix
  alarm(kPatience);       // where ending the job hangs too, this process ends, and the
                          // launcher sees it
  if (failure_context().abort_job) failure_context().abort_job(static_cast<int>(code));
  std::_Exit(static_cast<int>(code));
}
}  // namespace

void fail_check(const char* file, int line, const char* expression, std::string_view message) {
  const auto& who = failure_context();
  const auto text = fmt::format("rank {} on {}: {}:{}: check failed: {}: {}", who.rank, who.host, file, line,
                                expression, excerpt(message));
  if (who.throws && omp_in_parallel() == 0) throw CheckFailed(text);
  end_job("espalier: " + text + "\n", ExitCode::kInternal);
}

void fail_job(ExitCode code, std::string_view message) {
  const auto& who = failure_context();
  end_job(fmt::format("espalier: rank {} on {}: {}\n", who.rank, who.host, excerpt(message)), code);
}

}  // namespace espalier
