#include "kept_rows.hpp"

namespace espalier {

std::string saved_line(std::span<const EpochReport> epochs) {
  const auto sum = [&](const char* name) { return total(epochs, "saved", name); };
  const auto kept = sum("kept"), pruned = sum("pruned"), history = sum("history");
  if (!kept || !history || (*kept == 0 && *history == 0 && pruned == 0)) return {};
  const auto mb = [](std::int64_t bytes) { return static_cast<double>(bytes) / 1e6; };
  return fmt::format("rows of others not fetched: {}, {:.3f} MB kept here; history itself moved {:.3f} MB\n",
                     pruned ? fmt::format("{:.3f} MB were pruned", mb(*pruned))
                            : "all that was not drawn, nobody knows how much",
                     mb(*kept), mb(-*history));
}

}  // namespace espalier
