// The links of a graph.
#include <fmt/ranges.h>

#include "espalier/base/progress.hpp"
#include "espalier/base/text.hpp"
#include "info_pages.hpp"

namespace espalier {

namespace {

std::string relations_in_words(const LinkInfo& links) {
  constexpr std::ptrdiff_t kShown = 8;
  const auto shown = std::min(kShown, std::ssize(links.names));
  return fmt::format("{}: {}{}{}", links.names.size(),
                     fmt::join(links.names.begin(), links.names.begin() + shown, ", "),
                     shown < std::ssize(links.names) ? ", ..." : "",
                     links.graph_relations.empty() ? "; they are no relations of the graph" : "");
}

std::string negatives_in_words(const LinkInfo& links) {
  std::string words;
  for (std::size_t s = 0; s < links.splits.size(); ++s) {
    const auto& of = links.splits[s];
    if (!of.gives_candidates()) continue;
    words += words.empty() ? "" : "; ";
    if (of.non_links > 0)
      words += fmt::format("{}: {} for all links", kSplitNames[s], counted(of.non_links, "pair"));
    else
      words += fmt::format("{}: {} and {} for each link", kSplitNames[s], counted(of.negative_heads, "head"),
                           counted(of.negative_tails, "tail"));
  }
  return words;
}

}  // namespace

void show_links(const Communicator& world, const GraphFile& file) {
  const auto& links = file.info().links;
  if (!links.exist) return;
  note_activity("reading the links");
  const auto odd = odd_links(links, check_links(world, file));
  info_line("links",
            fmt::format("train {}, valid {}, test {}, {}", links.splits[0].links, links.splits[1].links,
                        links.splits[2].links, links.directed ? "directed" : "undirected"));
  if (!links.names.empty()) info_line("of relations", relations_in_words(links));
  const auto negatives = negatives_in_words(links);
  if (!negatives.empty()) info_line("negatives", negatives);
  for (const auto& sentence : odd) info_line("note", sentence);
  for (const auto& sentence : leaks_in_words(file, find_link_leaks(world, file), false))
    info_line("leak", sentence);
}

}  // namespace espalier
