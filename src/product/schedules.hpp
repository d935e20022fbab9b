// The schedules behind open_product, one file each.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "espalier/product/product.hpp"

namespace espalier {

template <class Index>
std::unique_ptr<Product<Index>> pull(const Cpu& cpu, const StackedFrontier& q, const DistCsr<Index>& a,
                                     const std::string& label);
template <class Index>
std::unique_ptr<Product<Index>> push(const Cpu& cpu, const StackedFrontier& q, const DistCsr<Index>& a,
                                     const std::string& label);
/// `oblivious`: broadcast whole block rows.
template <class Index>
std::unique_ptr<Product<Index>> staged(const Cpu& cpu, const StackedFrontier& q, const DistCsr<Index>& a,
                                       bool oblivious, const std::string& label);

/// One key per row of Q.
std::vector<RowKey> keys_of(const StackedFrontier& q);

}  // namespace espalier
