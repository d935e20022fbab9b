// What may lie beside the entries of a matrix: their values, or their relations.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <type_traits>
#include <utility>

#include "espalier/base/host_device.hpp"

namespace espalier {

/// The first of an array beside entries, or none. Who makes one says which, with an array or with
/// nothing: data() of an array without elements is null, but the array is there. Read like a
/// pointer, which is null where there is none, and only there. Small: copied into kernels.
template <class T>
class Beside {
 public:
  Beside() = default;
  ESPALIER_HD Beside(std::nullptr_t) {}
  /// All of an array that stays.
  template <class Array>
  requires requires(Array& array) {
    { array.data() } -> std::convertible_to<T*>;
    array.size();
  } &&(std::is_lvalue_reference_v<Array> ||
       std::ranges::enable_borrowed_range<Array>)explicit Beside(Array&& array)
      : first_(array.data() != nullptr ? array.data() : &nothing_) {
  }
  /// `there`: is there an array?
  template <class Array>
  requires std::constructible_from<Beside, Array> Beside(bool there, Array&& array)
      : Beside(there ? Beside(std::forward<Array>(array)) : Beside()) {}

  ESPALIER_HD operator T*() const { return first_; }
  ESPALIER_HD T* data() const { return first_; }
  /// Beside entries that so many stand before; none stays none.
  ESPALIER_HD Beside operator+(std::int64_t entries) const {
    Beside later;
    later.first_ = first_ == nullptr ? nullptr : first_ + entries;
    return later;
  }

 private:
  static inline std::remove_const_t<T> nothing_ = {};  ///< of an array without elements; never read
  T* first_ = nullptr;
};

}  // namespace espalier
