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

#include "espalier/base/execution.hpp"
#include "espalier/dense/matrix.hpp"
#include "espalier/nn/link_places.hpp"

namespace espalier {

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
