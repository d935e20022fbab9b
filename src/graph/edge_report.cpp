#include "edge_report.hpp"
#include "espalier/base/counted.hpp"
#include "espalier/base/log.hpp"

namespace espalier {

namespace {

// In a sum a loop meets itself.
bool adds_up(const EdgeReport& of) {
  return of.weighted &&
         (of.options.duplicates == Duplicates::kSum || of.options.duplicates == Duplicates::kCount);
}

std::string outcome_of_weights(const EdgeReport& of) {
  if (!of.weighted) return "no weights, so that each becomes one entry";
  constexpr const char* kOutcomes[] = {
      "weights are summed",     "weights are averaged",  "the largest weight stays",
      "the first weight stays", "the last weight stays", "an entry weighs as much as there are of it",
      "the first weight stays"};
  return kOutcomes[static_cast<int>(of.options.duplicates)];
}

std::string outcome_of_features(const EdgeReport& of) {
  if (!of.featured) return "";
  const auto how = of.options.features;
  if (how == DuplicateFeatures::kSum) return ", with the sum of the features";
  if (how == DuplicateFeatures::kMean) return ", with the mean of the features";
  const bool kept = how == DuplicateFeatures::kKept;
  if (kept && of.weighted && of.options.duplicates == Duplicates::kMax)
    return ", with the features of the " + of.line + " with the largest weight";
  const bool last = how == DuplicateFeatures::kLast || (kept && of.options.duplicates == Duplicates::kLast);
  return last ? ", with the features of the last" : ", with the features of the first";
}

}  // namespace

void report_repeated(const std::string& met, const EdgeReport& of, const std::string& to_keep) {
  const auto line = fmt::format("duplicates {}; {}{}{}", met, outcome_of_weights(of), outcome_of_features(of),
                                of.weighted ? "" : ". To keep how often an edge stands there, " + to_keep);
  if (of.options.duplicates == Duplicates::kSum)
    log::warning("{}", line);
  else
    log::info("{}", line);
}

namespace {

// Which edges met, and what came of it; nothing when none did.
void report_duplicates(const EdgeCounts& counts, const EdgeReport& of) {
  std::string met;
  const auto add = [&](const std::string& what) { met += (met.empty() ? "" : ", ") + what; };
  if (counts.repeated > 0)
    add(fmt::format("{} {} an earlier one", counted(counts.repeated, of.line),
                    counts.repeated == 1 ? "repeats" : "repeat"));
  if (counts.mirrored > 0)
    add(counted(counts.mirrored / 2, "pair of vertices is", "pairs of vertices are") +
        " listed in both directions");
  if (counts.loops > 0)
    add(counted(counts.loops, "self loop meets its", "self loops meet their") + " own reverse");
  if (met.empty()) return;
  if (counts.repeated > 0)
    report_repeated(met, of, "give --duplicates count");
  else
    log::info("duplicates {}; {}{}", met, outcome_of_weights(of), outcome_of_features(of));
  if (counts.loops > 0 && adds_up(of))
    log::info(
        "loops      the weight of {} twice, as in A + A^T: --drop-self-loops leaves them out, "
        "--duplicates max or first counts them once",
        counted(counts.loops, "self loop counts", "self loops count"));
}

// Lines u,v and v,u may be two edges, or one that is written down twice: only the user knows.
void report_symmetry(const EdgeCounts& counts, const EdgeReport& of, std::int64_t entries) {
  const bool before = counts.mirrored > 0 && counts.mirrored == entries - counts.loops;
  const bool adds = of.weighted && of.options.duplicates == Duplicates::kSum && counts.mirrored > 0;
  if (!adds) {
    if (before)
      log::info("symmetry   the graph is symmetric already: --symmetrize changes nothing{}",
                of.weighted && of.featured ? " but weights and features"
                : of.weighted              ? " but weights"
                : of.featured              ? " but features of edges"
                                           : "");
    return;
  }
  log::warning(
      "{} listed in both directions, {} of them with one weight twice; with --symmetrize the weights of both "
      "lines "
      "add up. If two such lines are one edge, {}give --duplicates max or first",
      counted(counts.mirrored / 2, "pair of vertices is", "pairs of vertices are"), counts.alike / 2,
      before ? "leave out --symmetrize (the graph is symmetric already), or " : "");
}

void report_direction(const EdgeReport& of, std::int64_t one_way, std::int64_t entries) {
  if (one_way == 0) return;
  const auto some = one_way == entries ? "no edge is listed in both directions"
                                       : fmt::format("{} of {} entries have no reverse", one_way, entries);
  log::info("directed   {}; --symmetrize makes edges undirected", some);
  if (!of.one_direction_by.empty())
    log::warning(
        "meta.json says {}: the file lists one direction of undirected edges, and {} of {} have no reverse; "
        "give --symmetrize unless you want it directed",
        of.one_direction_by, one_way, entries);
}

void report_counts(const EdgeReport& of, const EdgeCounts& counts, std::int64_t entries, double seconds) {
  log::info("edges      {} in {:.1f} s, {} added, {} dropped, {} merged: {}", counted(counts.given, of.line),
            seconds, counted(counts.reversed, "reversed edge"), counted(counts.loops_dropped, "self loop"),
            counted(counts.merged, "duplicate"), counted(entries, "entry"));
}

// Whoever weighs edges so lightly hardly means that they are to weigh nothing.
void report_vanished(const EdgeReport& of, const EdgeCounts& counts) {
  if (counts.vanished > 0 && of.options.duplicates != Duplicates::kCount)
    log::warning(
        "weights    {} of {} {} too small for float32, which holds {} as 0; multiply all of them by one "
        "number "
        "if these edges are to weigh something",
        counts.vanished, counts.given, counts.vanished == 1 ? "is" : "are",
        counts.vanished == 1 ? "it" : "them");
}

}  // namespace

void report_edges(const EdgeReport& of, const EdgeCounts& counts, std::int64_t entries, std::int64_t one_way,
                  double seconds) {
  report_counts(of, counts, entries, seconds);
  report_vanished(of, counts);
  report_duplicates(counts, of);
  if (of.options.symmetrize) report_symmetry(counts, of, entries);
  report_direction(of, one_way, entries);
}

}  // namespace espalier
