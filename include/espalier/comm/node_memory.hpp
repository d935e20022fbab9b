// Memory that several ranks of a node read and write in common, and who these ranks are.
//
// A file in memory that one rank makes and the others map by way of its process (decision 017): so
// nothing is left behind, however the job ends, and no limit of /dev/shm applies.
#pragma once

#include <cstddef>
#include <memory>

#include "espalier/comm/communicator.hpp"

namespace espalier {

/// Collective over `world`. The ranks that have this one's host name, in their order.
Communicator ranks_of_node(const Communicator& world);

/// Collective, once: the ranks of a node tell each other who they are, so that one speaks for all
/// when the job ends (base/final_message.hpp). Only ranks whose processes this one can see are
/// watched: in a container of its own a process has numbers that mean nothing outside.
void exchange_node_peers(const Communicator& world);

class NodeMemory {
 public:
  /// Collective over `ranks`, all of one node. Zeros; pages are taken when they are touched. Null,
  /// on every rank, where one cannot have it: containers that do not see each other.
  static std::unique_ptr<NodeMemory> make(const Communicator& ranks, std::int64_t bytes);
  ~NodeMemory();
  NodeMemory(const NodeMemory&) = delete;
  NodeMemory& operator=(const NodeMemory&) = delete;

  /// What one rank has written others read after a barrier of both.
  std::byte* data() const { return data_; }
  std::int64_t size() const { return size_; }

 private:
  NodeMemory(std::byte* data, std::int64_t size) : data_(data), size_(size) {}

  std::byte* data_;
  std::int64_t size_;
};

}  // namespace espalier
