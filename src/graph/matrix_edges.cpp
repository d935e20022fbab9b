#include "matrix_edges.hpp"

#include <algorithm>

#include "espalier/base/log.hpp"
#include "espalier/base/text.hpp"

namespace espalier {

std::string in_keys(std::string words) {
  constexpr const char* kKeys[][2] = {{"--duplicates ", "duplicates = "},
                                      {"--duplicate-features ", "duplicate_features = "},
                                      {"--symmetrize", "directed = false"},
                                      {"--drop-self-loops", "loops = \"drop\""},
                                      {"--half", "half = true"}};
  // And is no part of a path.
  const auto begins_word = [&](std::size_t at) {
    return at == 0 || std::string_view(" (\"'").find(words[at - 1]) != std::string_view::npos;
  };
  for (const auto& [option, key] : kKeys)
    for (auto at = words.find(option); at != std::string::npos; at = words.find(option, at + 1))
      if (begins_word(at)) words.replace(at, std::string_view(option).size(), key);
  return words;
}

namespace {

template <class... Args>
void inform(const EdgeReport& of, fmt::format_string<Args...> format, Args&&... args) {
  const auto words = fmt::format(format, std::forward<Args>(args)...);
  log::info("{}", of.by_keys ? in_keys(words) : words);
}
template <class... Args>
void warn(const EdgeReport& of, fmt::format_string<Args...> format, Args&&... args) {
  const auto words = fmt::format(format, std::forward<Args>(args)...);
  log::warning("{}", of.by_keys ? in_keys(words) : words);
}

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

namespace {

std::string outcome_of_times(const EdgeReport& of) {
  return !of.timed ? "" : of.options.latest ? ", with the latest time" : ", with the earliest time";
}

}  // namespace

void report_repeated(const std::string& met, const EdgeReport& of, const std::string& to_keep) {
  const auto line = fmt::format(
      "duplicates {}; {}{}{}", met, outcome_of_weights(of), outcome_of_features(of) + outcome_of_times(of),
      of.weighted || !of.advises ? "" : ". To keep how often an edge stands there, " + to_keep);
  if (of.options.duplicates == Duplicates::kSum && of.advises)
    warn(of, "{}", line);
  else
    inform(of, "{}", line);
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
    inform(of, "duplicates {}; {}{}", met, outcome_of_weights(of), outcome_of_features(of));
  if (counts.loops > 0 && adds_up(of))
    inform(of,
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
      inform(of, "symmetry   the graph is symmetric already: --symmetrize changes nothing{}",
             of.weighted && of.featured ? " but weights and features"
             : of.weighted              ? " but weights"
             : of.featured              ? " but features of edges"
                                        : "");
    return;
  }
  warn(
      of,
      "{} listed in both directions, {} of them with one weight twice; with --symmetrize the weights of both "
      "lines "
      "add up. If two such lines are one edge, {}give --duplicates max or first",
      counted(counts.mirrored / 2, "pair of vertices is", "pairs of vertices are"), counts.alike / 2,
      before ? "leave out --symmetrize (the graph is symmetric already), or " : "");
}

void report_direction(const EdgeReport& of, std::int64_t one_way, std::int64_t entries) {
  if (one_way == 0 || !of.advises) return;
  const auto some = one_way == entries ? "no edge is listed in both directions"
                                       : fmt::format("{} of {} entries have no reverse", one_way, entries);
  inform(of, "directed   {}; --symmetrize makes edges undirected", some);
  if (!of.one_direction_by.empty())
    warn(of,
         "meta.json says {}: the file lists one direction of undirected edges, and {} of {} have no reverse; "
         "give --symmetrize unless you want it directed",
         of.one_direction_by, one_way, entries);
}

void report_counts(const EdgeReport& of, const EdgeCounts& counts, std::int64_t entries, double seconds) {
  inform(of, "edges      {} in {:.1f} s, {} added, {} dropped, {} merged: {}", counted(counts.given, of.line),
         seconds, counted(counts.reversed, "reversed edge"), counted(counts.loops_dropped, "self loop"),
         counted(counts.merged, "duplicate"), counted(entries, "entry"));
}

}  // namespace

void report_vanished(const EdgeReport& of, std::int64_t vanished, std::int64_t given) {
  if (vanished > 0 && of.options.duplicates != Duplicates::kCount)
    warn(of,
         "weights    {} of {} {} too small for float32, which holds {} as 0; multiply all of them by one "
         "number "
         "if these edges are to weigh something",
         vanished, given, vanished == 1 ? "is" : "are", vanished == 1 ? "it" : "them");
}

void report_edges(const EdgeReport& of, const EdgeCounts& counts, std::int64_t entries, std::int64_t one_way,
                  double seconds) {
  report_counts(of, counts, entries, seconds);
  report_vanished(of, counts.vanished, counts.given);
  report_duplicates(counts, of);
  if (of.options.symmetrize) report_symmetry(counts, of, entries);
  report_direction(of, one_way, entries);
}

[[noreturn]] void refuse_duplicate(const EdgeSource& edges, const RepeatedEdge& found, bool typed) {
  const auto here = edges.place(found.edge), earlier = edges.place(found.earlier);
  if (typed)
    input_error("{}: repeats {}; choose --duplicates sum, max, first or last to merge them", here, earlier);
  if (found.reversed)
    input_error(
        "{}: reverses the edge of {}, and with --symmetrize each of the two stands for both directions; "
        "leave out --symmetrize, or choose --duplicates sum, max or first",
        here, earlier);
  input_error("{}: repeats the edge of {}; choose --duplicates sum, max or first to merge them", here,
              earlier);
}

template <class Index>
void report_alone(const Communicator& comm, const Csr<Index>& rows) {
  const auto n = rows.columns;
  std::vector<bool> joined(static_cast<std::size_t>(n));
  const auto begin = even_range(n, comm.size(), comm.rank()).begin;
  for (std::int64_t row = 0; row < rows.rows; ++row) {
    if (rows.row_size(row) > 0) joined[begin + row] = true;
    for (const auto column : rows.row_indices(row)) joined[column] = true;
  }
  constexpr std::int64_t kAtOnce = std::int64_t{1} << 16;
  std::int64_t alone = 0;
  for (std::int64_t v = 0; v < n; v += kAtOnce) {
    Buffer<std::int32_t> piece(joined.begin() + v, joined.begin() + std::min(v + kAtOnce, n));
    comm.all_reduce(std::span(piece), Reduction::kMax, "vertices");
    alone += std::ranges::count(piece, 0);
  }
  if (alone > n / 2 && comm.rank() == 0)
    log::warning("{} of the vertices 0 to {} have no edge; --renumber makes vertices of those that have one",
                 alone, n - 1);
}

template void report_alone(const Communicator&, const Csr<std::int32_t>&);
template void report_alone(const Communicator&, const Csr<std::int64_t>&);

void report_relations(const Schema& schema, const MatrixEdges& edges,
                      const std::vector<std::int64_t>& entries, EdgeReport of, int triplets) {
  const bool weighted = of.weighted;
  for (int r = 0; r < std::ssize(entries); ++r) {
    std::string line = counted(entries[r], "entry");
    std::int64_t repeated = 0;
    if (r < triplets) {
      const auto dropped = of.options.drop_self_loops ? edges.loops(r) : 0;
      repeated = (edges.given(r) - dropped) * (edges.both_ways(r) ? 2 : 1) - entries[r];
      line = counted(edges.given(r), of.line) + ", " + line;
      if (dropped > 0) line += ", " + counted(dropped, "self loop", "self loops") + " dropped";
    }
    log::info("relation   {}: {}", schema.full_name(r), line);
    of.timed = r < triplets && edges.timed(r);
    of.weighted =
        weighted && (r >= triplets || edges.weighted(r) || of.options.duplicates == Duplicates::kCount);
    if (repeated > 0)
      report_repeated(fmt::format("{}: {} an earlier one", schema.full_name(r),
                                  edges.both_ways(r) ? counted(repeated, "entry repeats", "entries repeat")
                                                     : counted(repeated, "line repeats", "lines repeat")),
                      of, "make them edges of two relations, or give --duplicates count");
  }
}

}  // namespace espalier
