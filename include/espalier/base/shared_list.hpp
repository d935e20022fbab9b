// A short list that the host and the kernels of a space both read: where batches begin, how many
// rows a rank has. On a GPU it is kept twice.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "espalier/base/device_array.hpp"

namespace espalier {

/// Never changed once made; copies share the memory. What it shows is asked of a list that stays.
template <class T, class Space = Cpu>
class SharedList {
 public:
  SharedList() = default;
  SharedList(const Space& space, std::vector<T> values) : lists_(std::make_shared<Lists>()) {
    lists_->host = std::move(values);
    if constexpr (std::is_same_v<Space, Cuda>)
      upload(space, std::span<const T>(lists_->host), lists_->device);
  }

  /// For kernels of the space.
  const T* data() const& {
    if (lists_ == nullptr) return nullptr;
    if constexpr (std::is_same_v<Space, Cuda>)
      return lists_->device.data();
    else
      return lists_->host.data();
  }
  void data() const&& = delete;

  // For the host.
  std::span<const T> host() const& {
    return lists_ == nullptr ? std::span<const T>() : std::span<const T>(lists_->host);
  }
  void host() const&& = delete;
  std::int64_t size() const { return std::ssize(host()); }
  T operator[](std::int64_t k) const { return lists_->host[k]; }
  T back() const { return lists_->host.back(); }

 private:
  struct Lists {
    std::vector<T> host;
    ForSpace<Space, std::monostate, DeviceArray<T>> device;
  };
  std::shared_ptr<Lists> lists_;
};

}  // namespace espalier
