// DeviceArray<T>: what Buffer<T> is, in the memory of the GPU, or in host memory that the GPU reads
// over the bus.
//
// Memory comes from the driver's pool and is given back in the order of the compute stream of the
// thread that frees it, so an array may go while kernels that read it are still to run. T is
// trivially copyable; elements are not initialised.
#pragma once

#include <cstring>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "espalier/base/buffer.hpp"
#include "espalier/base/cuda.hpp"

namespace espalier {

enum class Placement {
  kDevice,  ///< memory of the GPU
  kHost,    ///< pinned memory of the host; kernels read it through the same pointer, at the speed
            ///< of the bus
};

/// Memory for an array, of the GPU that this process took. Throws UserError(kMemory): what was
/// asked for, what was free, and which keys ask for less. In a job of several ranks it ends the
/// job with these words, as host memory does: the others are not at the same place, and may wait
/// for this one.
void* allocate_device(std::size_t bytes, Placement placement);
void free_device(void* memory, Placement placement) noexcept;

/// What the memory that is allocated while it lives is for: the error of a full GPU names it.
class DevicePurpose {
 public:
  explicit DevicePurpose(const char* what);
  ~DevicePurpose();
  DevicePurpose(const DevicePurpose&) = delete;
  DevicePurpose& operator=(const DevicePurpose&) = delete;

 private:
  const char* before_;
};

template <class T>
class DeviceArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  DeviceArray() = default;
  explicit DeviceArray(std::size_t size, Placement placement = Placement::kDevice) : placement_(placement) {
    resize(size);
  }
  /// `size` elements of an array that others share, from `first` on; where it has to grow it takes
  /// memory of its own.
  DeviceArray(std::shared_ptr<DeviceArray> whole, std::size_t first, std::size_t size)
      : data_(whole->data() + first),
        size_(size),
        capacity_(size),
        placement_(whole->placement()),
        whole_(std::move(whole)) {}
  ~DeviceArray() { release(); }
  DeviceArray(DeviceArray&& other) noexcept { swap(other); }
  DeviceArray& operator=(DeviceArray&& other) noexcept {
    swap(other);
    return *this;
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::size_t capacity() const { return capacity_; }
  bool empty() const { return size_ == 0; }
  Placement placement() const { return placement_; }
  /// What it is a part of; null: of nothing.
  const std::shared_ptr<DeviceArray>& whole() const { return whole_; }

  /// Keeps the elements when the capacity suffices, and only then.
  void resize(std::size_t size) {
    if (size > capacity_) reserve(size);
    size_ = size;
  }
  /// Elements are lost when the memory has to grow.
  void reserve(std::size_t capacity) {
    if (capacity <= capacity_) return;
    release();
    data_ = static_cast<T*>(allocate_device(capacity * sizeof(T), placement_));
    capacity_ = capacity;
  }
  void clear() { size_ = 0; }
  void swap(DeviceArray& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    std::swap(placement_, other.placement_);
    std::swap(whole_, other.whole_);
  }

 private:
  void release() noexcept {
    if (data_ != nullptr && whole_ == nullptr) free_device(data_, placement_);
    whole_ = nullptr;
    data_ = nullptr;
    size_ = capacity_ = 0;
  }

  T* data_ = nullptr;
  std::size_t size_ = 0, capacity_ = 0;
  Placement placement_ = Placement::kDevice;
  std::shared_ptr<DeviceArray> whole_;
};

/// From pageable memory of the host, which may be changed or freed when the call returns, to the
/// GPU's, in the order of the stream. Goes through pinned memory of the thread: whether the driver
/// does so, or the GPU reads the source later, depends on the machine.
void copy_bytes_to_device(const Cuda& cuda, const void* from, void* to, std::size_t bytes);
/// Waits.
void copy_bytes_to_host(const Cuda& cuda, const void* from, void* to, std::size_t bytes);
void copy_bytes_on_device(const Cuda& cuda, const void* from, void* to, std::size_t bytes);
void fill_bytes(const Cuda& cuda, void* memory, int byte, std::size_t bytes);

/// to = from, which is pageable memory of the host: it may be changed when the call returns. The
/// copy itself runs in the order of the stream; one to pinned memory waits.
template <class T>
void upload(const Cuda& cuda, std::span<const T> from, DeviceArray<T>& to) {
  to.resize(from.size());
  (to.placement() == Placement::kDevice ? copy_bytes_to_device : copy_bytes_to_host)(
      cuda, from.data(), to.data(), from.size_bytes());
}
template <class T>
DeviceArray<T> upload(const Cuda& cuda, const Buffer<T>& from, Placement placement = Placement::kDevice) {
  DeviceArray<T> to(0, placement);
  upload(cuda, std::span<const T>(from), to);
  return to;
}

/// `count` elements from a device pointer; waits for the stream.
template <class T>
Buffer<T> download(const Cuda& cuda, const T* from, std::size_t count) {
  Buffer<T> to(count);
  copy_bytes_to_host(cuda, from, to.data(), count * sizeof(T));
  return to;
}
template <class T>
Buffer<T> download(const Cuda& cuda, const DeviceArray<T>& from) {
  return download(cuda, from.data(), from.size());
}

/// to[0 .. size) = from[0 .. size), both on the device, in the order of the stream.
template <class T>
void copy(const Cuda& cuda, const DeviceArray<T>& from, DeviceArray<T>& to) {
  to.resize(from.size());
  copy_bytes_on_device(cuda, from.data(), to.data(), from.size() * sizeof(T));
}

/// Every byte of the array becomes 0.
template <class T>
void fill_zero(const Cuda& cuda, DeviceArray<T>& array) {
  fill_bytes(cuda, array.data(), 0, array.size() * sizeof(T));
}

}  // namespace espalier
