// Links as examples: edges that are learnt, each with other ends that it is told from.
//
// A link is (head, relation, tail). The links of a split are spread over the ranks, and the order
// of an epoch is computed (KeyedPermutation, base/philox.hpp), so no rank holds all links or
// their order: a rank asks the owners for those of its batches. A batch is a function of (seed,
// epoch, batch).
//
// Negatives are drawn for (seed, epoch, link): k times the tail, or one of both ends, is replaced
// by a vertex that the relation allows there. Degrees and filters take messages (link_lookup.hpp).
//
// With groups (examples.hpp) links stand group after group, so that the links of a batch and their
// owner are near one another; each group has a permutation of its own.
//
// The seeds of a batch are the distinct ends of its links and negatives, ascending. Its own links
// are left out of its blocks, in the other direction and as inverse relation, too.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "espalier/base/row_range.hpp"
#include "espalier/product/schedule.hpp"
#include "espalier/sample/examples.hpp"
#include "espalier/sample/link_lookup.hpp"

namespace espalier {

/// Links of which rank r of p has those of even_range(count, p, r).
struct LinkList {
  std::int64_t count = 0;               ///< of all ranks
  Buffer<std::int64_t> heads, tails;    ///< vertices
  Buffer<std::int32_t> relations = {};  ///< beside them; empty: all of relation 0
  /// [groups + 1] where those of each group begin; empty: they are of no groups.
  std::vector<std::int64_t> group_begins = {};

  LinkTriple link(std::int64_t k) const { return {heads[k], tails[k], relations.empty() ? 0 : relations[k]}; }
};

/// Collective. The links group after group, each in its order. `groups`: of this rank's links.
LinkList sort_by_group(const Communicator& comm, const LinkList& list, const BatchGroups& groups);

/// What links of a relation join.
struct LinkEnds {
  RowRange heads, tails;  ///< vertices that can be either
  /// The relations of A in which a link is the entry (tail, head), and (head, tail); -1: in none.
  std::int32_t forward = 0, backward = -1;
  /// Where both ends are of one kind the entries the other way round say the same, or tell it.
  bool both_ways = true;
};

enum class NegativesMode {
  kUniform,  ///< each is any vertex that the relation allows
  kShared,   ///< the same k for kNegativesChunk links of a batch in a row
  kInBatch,  ///< the ends of other links of the batch and relation; uniform without any
  kDegree    ///< in proportion to how many links a vertex is an end of, to a power
};
/// "uniform", "shared", "in-batch" or "degree". Throws UserError(kUsage) for another name.
NegativesMode negatives_mode_of(const std::string& name);

inline constexpr std::int64_t kNegativesChunk = 64;

struct Negatives {
  std::int64_t per_link = 1;
  NegativesMode mode = NegativesMode::kUniform;
  bool of_both_ends = false;  ///< is the head replaced as often as the tail, or never?
  bool filtered = false;      ///< is one that is a link drawn again, 15 times at most?
  double power = 0.75;        ///< of degrees
};

/// A batch of links. Ends are places among the seeds.
struct LinkBatch {
  Buffer<std::int64_t> seeds;
  Buffer<std::int32_t> heads, tails, relations;         ///< [links]
  Buffer<std::int32_t> negative_heads, negative_tails;  ///< [links, per_link]
  Buffer<SeedPair> excluded_edges;

  std::int64_t links() const { return std::ssize(heads); }
  /// Of all that it is beside its seeds.
  std::uint64_t digest() const;
};

class LinkExamples : public Examples {
 public:
  /// A prepared batch.
  virtual const LinkBatch& links(std::int64_t batch) const = 0;
  /// How many links batches [begin, end) have.
  virtual std::int64_t count_links(std::int64_t begin, std::int64_t end) const = 0;
};

/// What links are drawn from.
struct LinkPool {
  LinkList list;
  std::vector<LinkEnds> ends;  ///< of each relation
  Negatives negatives;
  std::unique_ptr<const KnownLinks> known = {};       ///< where negatives are filtered
  std::unique_ptr<const DegreeWeights> weights = {};  ///< where they are drawn by degree
};

/// Epochs of the links of a list; their examples are LinkExamples, and must not outlive it.
class LinkSource final : public ExampleSource {
 public:
  /// Collective. `ends`: of each relation. `directed`: is a link another than its reverse?
  LinkSource(const Communicator& comm, LinkList list, std::vector<LinkEnds> ends, const Negatives& negatives,
             std::int64_t vertices, bool directed);

  const LinkList& list() const { return pool_.list; }
  const std::vector<LinkEnds>& ends() const { return pool_.ends; }
  std::shared_ptr<const Examples> of_epoch(const EpochShape& shape) const override;

 private:
  LinkPool pool_;
};

/// The links of a list that this rank has.
std::vector<LinkTriple> triples_of(const LinkList& list);

/// The share of a rank's links that others have, where they are of `groups` (0: of none).
double share_of_others(int ranks, std::int64_t groups, std::int64_t batches_per_step);

/// What a rank receives that asks for so many links at once, of which others have that share, and
/// for the negatives of so many, of which a share are links (drawn again if filtered).
Cost link_request_cost(int ranks, double links, double share);
Cost negatives_cost(int ranks, const Negatives& negatives, double links, double known_share);

/// How many different vertices so many even draws meet on average.
double expected_distinct(double draws, double vertices);

/// How many different vertices the ends of so many links and their negatives are, if drawn evenly.
std::int64_t expected_seeds(std::int64_t links, const Negatives& negatives, std::int64_t vertices);

}  // namespace espalier
