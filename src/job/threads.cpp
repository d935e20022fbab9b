#include "espalier/job/threads.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "espalier/base/counted.hpp"
#include "espalier/base/escape.hpp"

namespace espalier {

namespace {

constexpr int kMostThreads = 4096;  // as run.threads

// The number that `text` is, or begins with where it is a list.
std::optional<int> number_of_threads(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  auto rest = text.substr(end - text.data());
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  const bool whole = rest.empty() || rest[0] == ',';
  if (error != std::errc() || !whole || count < 1 || count > kMostThreads) return {};
  return count;
}

}  // namespace

std::string Threads::in_words(const char* of) const {
  return fmt::format("{} {} ({})", counted(count, "thread"), of, source);
}

Threads choose_threads(const AutoInt& asked, std::int64_t share, const log::Listener& listener) {
  if (asked.value) return {static_cast<int>(*asked.value), "run.threads"};
  for (const char* name : {"OMP_NUM_THREADS", "SLURM_CPUS_PER_TASK"}) {
    const char* text = std::getenv(name);
    if (text == nullptr || *text == '\0') continue;
    if (const auto count = number_of_threads(text)) return {*count, name};
    log::tell(listener, log::Level::kWarning,
              "{} = {} is no number of threads from 1 to {}; it is passed over", name, quoted(text),
              kMostThreads);
  }
  return {static_cast<int>(std::max<std::int64_t>(1, share)), "its share of the cores"};
}

}  // namespace espalier
