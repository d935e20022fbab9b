// Links that a person or a script asks about (`espalier infer --links`): a text file, a link on a
// line, by names or numbers; and the answers as CSV.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "espalier/job/job.hpp"
#include "espalier/train/links.hpp"

namespace espalier {

/// Collective. Lines of head, relation and tail, apart by tabs or commas; where links have one
/// relation it may be left out. `open`: lines without tails, which are asked for (0 here). The
/// links in their order, on every rank. Vertices are named as named_vertices.hpp says, relations by
/// name or number. Rank 0 reads the file. Throws UserError(kInput, kUsage), on every rank, naming
/// the line.
std::vector<LinkTriple> read_link_queries(const Job& job, const std::string& path, bool open,
                                          const std::string& named_by);

/// Collective; rank 0 writes. "head,relation,tail,score,known" and a line for each, vertices named
/// as in queries; `known`: 1 of a link that the file has.
void write_link_answers(const Job& job, const std::string& path, std::span<const LinkTriple> links,
                        std::span<const float> scores, std::span<const std::uint8_t> known,
                        const std::string& named_by);

}  // namespace espalier
