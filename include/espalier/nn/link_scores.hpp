// Scores of links (head, relation, tail) and their gradients: how probable a link is by the rows h
// and t of its two vertices, as a network has them, and by a trained row r of its relation.
//
// What a score is stands in a table of kinds (src/nn/link_score_table.hpp). All are a
// function of one sum over the numbers of a row, or over complex numbers: the first half of a row
// is then the real parts, the second the imaginary ones. Or a small network takes the numbers in
// the place of the sum: nn/link_decoder.hpp.
//
// Rows are float32. Arithmetic is in double, from products to sums, and rounded once: no finite
// row overflows on the way.
//
// Law: sums have one shape, for any number of threads and registers of any width, and GPUs give
// the CPU's bits.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "espalier/base/arrays.hpp"
#include "espalier/base/execution.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/dense/matrix.hpp"

namespace espalier {

// Where the rows that links name are named: lists by which gradients of links become sums over the
// links of a row, without atomics and in one order.
//
// A link i is (head, relation, tail). It *uses* two vertices' rows: use 2 i is that of its head,
// 2 i + 1 that of its tail.
//
// Law: a function of the links only. Each list ascends.

/// Links between rows of a matrix, in memory of any space. Small: copied into kernels.
struct LinksView {
  std::int64_t count = 0;
  const std::int32_t *heads = nullptr, *tails = nullptr;  ///< [count] rows
  const std::int32_t* relations = nullptr;                ///< [count]; null: all are of relation 0

  ESPALIER_HD std::int64_t relation(std::int64_t i) const { return relations == nullptr ? 0 : relations[i]; }
  ESPALIER_HD std::int64_t row_of_use(std::int64_t use) const {
    return use % 2 == 0 ? heads[use / 2] : tails[use / 2];
  }
};

/// Lists, one after another: k has members[begins[k] .. begins[k + 1]).
template <class Space>
struct ListsOn {
  Array<Space, std::int64_t> begins;  ///< [lists + 1]
  Array<Space, std::int32_t> members;
};

template <class Space>
struct LinkPlacesOn {
  ListsOn<Space> by_row;       ///< [rows] uses of the row
  ListsOn<Space> by_relation;  ///< [relations] links of the relation
  /// [relations + 1] how many chunks of kSummedRows links the relations before have: sums over a
  /// relation, which may have all links, are added chunk by chunk (dense/column_sums.hpp).
  Array<Space, std::int64_t> chunks_before;
};
using LinkPlaces = LinkPlacesOn<Cpu>;

/// Overwrites `places`, whose memory is used again. Links name rows below `rows` and relations
/// below `relations`, which on the CPU is checked; with 0 relations no lists of them are made. At
/// most 2^30 - 1 links. Where the space is a GPU the host does not wait.
void find_link_places(const Cpu&, const LinksView& links, std::int64_t rows, std::int64_t relations,
                      LinkPlaces& places);
void find_link_places(const Cuda&, const LinksView& links, std::int64_t rows, std::int64_t relations,
                      LinkPlacesOn<Cuda>& places);

/// What the rest of the program must know of a score.
struct LinkScoreKind {
  const char* name;
  int numbers;           ///< that stand for one another in a vertex's row: 2 where they are
                         ///< complex, so that its width must be even
  int relation_numbers;  ///< in a relation's row for as many; 0: relations have no rows
  bool has_norm;         ///< is it a distance, by norm 1 or 2?
  bool has_angles;       ///< are relations' rows angles?
  bool has_network;      ///< are numbers not added, but given to a network?
  const char* about;

  std::int64_t relation_width(std::int64_t width) const { return width / numbers * relation_numbers; }
  bool takes_width(std::int64_t width) const { return width % numbers == 0; }
};

std::span<const LinkScoreKind> link_score_kinds();
/// Throws UserError(kUsage), which names `what` ("train.score ="), where there is none.
const LinkScoreKind& link_score_kind_of(const std::string& name, const std::string& what);

struct LinkScore {
  const LinkScoreKind* kind;
  int norm = 1;  ///< of a distance
};

/// Of a kind without a network: scores [links], memory of the space. h [rows, width] and relations
/// [R, relation_width(width)] are what links name rows of. The host does not wait for a GPU.
void link_scores(const Cpu&, const LinkScore& score, ConstMatrixView<float> h,
                 ConstMatrixView<float> relations, const LinksView& links, float* scores);
void link_scores(const Cuda&, const LinkScore& score, ConstMatrixView<float, Cuda> h,
                 ConstMatrixView<float, Cuda> relations, const LinksView& links, float* scores);

/// dh += and drelations += the gradients, where those by scores are dscores [links]. `places` are
/// of the links, `scores` what link_scores gave. A row of h adds its uses in their order, a
/// relation its links in chunks of kSummedRows: rows that no link names stay as they are. Where a
/// distance has no gradient (a difference of 0) it counts as 0.
void link_scores_backward(const Cpu&, const LinkScore& score, ConstMatrixView<float> h,
                          ConstMatrixView<float> relations, const LinksView& links, const LinkPlaces& places,
                          const float* scores, const float* dscores, MatrixView<float> dh,
                          MatrixView<float> drelations);
void link_scores_backward(const Cuda&, const LinkScore& score, ConstMatrixView<float, Cuda> h,
                          ConstMatrixView<float, Cuda> relations, const LinksView& links,
                          const LinkPlacesOn<Cuda>& places, const float* scores, const float* dscores,
                          MatrixView<float, Cuda> dh, MatrixView<float, Cuda> drelations);

/// products [links, width] = h r t of each link, number by number.
void link_products(const Cpu&, ConstMatrixView<float> h, ConstMatrixView<float> relations,
                   const LinksView& links, MatrixView<float> products);
void link_products(const Cuda&, ConstMatrixView<float, Cuda> h, ConstMatrixView<float, Cuda> relations,
                   const LinksView& links, MatrixView<float, Cuda> products);

/// dh += and drelations += the gradients, as link_scores_backward adds them, where those by
/// products are dproducts.
void link_products_backward(const Cpu&, ConstMatrixView<float> h, ConstMatrixView<float> relations,
                            const LinksView& links, const LinkPlaces& places,
                            ConstMatrixView<float> dproducts, MatrixView<float> dh,
                            MatrixView<float> drelations);
void link_products_backward(const Cuda&, ConstMatrixView<float, Cuda> h,
                            ConstMatrixView<float, Cuda> relations, const LinksView& links,
                            const LinkPlacesOn<Cuda>& places, ConstMatrixView<float, Cuda> dproducts,
                            MatrixView<float, Cuda> dh, MatrixView<float, Cuda> drelations);

}  // namespace espalier
