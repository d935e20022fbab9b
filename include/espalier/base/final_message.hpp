// What a process says when it ends before its time, and who says it. Lines are made without memory
// from the heap and without locks, so signal handlers and the watchdog can write them whatever the
// other threads are doing.
//
// The ranks of a node share one flag: the first that has something to say about the end of the job
// claims the final message, the others end in silence. So one cause gives one message, though the
// launcher ends all ranks with a signal each. They also know each other's process ids: a rank that
// is killed says nothing, and those that the launcher ends for it say it instead.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace espalier {

/// Writes to stderr, waiting a second at most for a reader that does not read. A signal handler may
/// call it.
void write_to_stderr(std::string_view text);

/// One line, cut at 500 bytes; a signal handler may make it. Begins "espalier: rank R on HOST: ".
class FinalLine {
 public:
  FinalLine();
  FinalLine& operator<<(const char* text);
  FinalLine& operator<<(std::int64_t number);
  void write();

 private:
  char text_[512];
  std::size_t size_ = 0;
};

/// Another rank of this node.
struct NodePeer {
  int rank = 0;
  int pid = 0;
};

/// comm/ tells who they are, once, and gives the flag in memory that all of them share (null: one
/// of my own).
void set_node_peers(std::vector<NodePeer> peers, std::atomic<int>* spoken);

/// True for the first rank of this node that asks. A signal handler may call it, and the next
/// three.
bool claim_final_message();
bool final_message_is_claimed();

/// A rank of this node whose process is no more; null where all live. After the end of MPI that is
/// no news.
const NodePeer* vanished_peer();

/// Is rank 0 on this node? It speaks for all nodes of what reaches all nodes.
bool on_first_node();

}  // namespace espalier
