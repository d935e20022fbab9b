// NCCL over MPI. A unique id names the world rank that made it and a serial number; that rank
// takes part in the communicator, tells the others who they are, and the group gets a communicator
// of its own.
//
// What a group of operations sends is read when the group ends, in the order of its stream; what it
// receives reaches device memory when somebody waits for the stream (deliver_later).
#include "nccl.h"

#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <set>
#include <vector>

#include "memory.hpp"

using espalier_emulation::deliver;
using espalier_emulation::deliver_later;
using espalier_emulation::DeviceAccess;
using espalier_emulation::good_argument;

struct ncclComm {
  MPI_Comm mpi = MPI_COMM_NULL;
  int rank = 0, ranks = 0;
};

namespace {

constexpr int kTag = 12000, kTags = 10000;
constexpr std::size_t kPiece = std::size_t{1} << 30;

struct Operation {
  enum Kind { kSend, kReceive, kBroadcast, kAllReduce } kind;
  const void* send;
  void* receive;
  std::size_t count;
  ncclDataType_t type;
  ncclRedOp_t reduction;
  int peer;
  ncclComm_t comm;
  cudaStream_t stream;
  std::vector<std::byte> data;  // as it travels
};

thread_local int group_depth = 0;
thread_local std::vector<Operation> group;

// Groups of sends and receives that this process has run.
int exchanges = 0;

struct IdContent {
  int root, serial;
};

MPI_Datatype mpi_type(ncclDataType_t type) {
  switch (type) {
    case ncclUint8:
      return MPI_BYTE;
    case ncclInt64:
      return MPI_INT64_T;
    case ncclUint64:
      return MPI_UINT64_T;
    case ncclFloat32:
      return MPI_FLOAT;
    case ncclFloat64:
      return MPI_DOUBLE;
  }
  return MPI_DATATYPE_NULL;
}
std::size_t size_of(ncclDataType_t type) {
  return type == ncclUint8 ? 1 : type == ncclFloat32 ? 4 : 8;
}
MPI_Op mpi_operation(ncclRedOp_t operation) {
  return operation == ncclSum ? MPI_SUM : operation == ncclMax ? MPI_MAX : MPI_MIN;
}

template <class Piece>
void for_each_piece(std::vector<std::byte>& data, Piece piece) {
  for (std::size_t at = 0; at < data.size(); at += kPiece)
    piece(data.data() + at, static_cast<int>(std::min(kPiece, data.size() - at)));
}

// Sends and receives of the whole group are under way together; collectives follow in order.
void run(std::vector<Operation>& operations) {
  std::vector<MPI_Request> requests;
  exchanges += std::any_of(operations.begin(), operations.end(), [](const Operation& o) {
    return o.kind == Operation::kSend || o.kind == Operation::kReceive;
  });
  for (auto& o : operations) {
    deliver(o.stream);
    o.data.resize(o.count * size_of(o.type));
    if (o.kind == Operation::kReceive || (o.kind == Operation::kBroadcast && o.peer != o.comm->rank))
      continue;
    const DeviceAccess access;
    std::memcpy(o.data.data(), o.send, o.data.size());
  }
  for (auto& o : operations)
    for_each_piece(o.data, [&](std::byte* at, int bytes) {
      if (o.kind == Operation::kSend)
        MPI_Isend(at, bytes, MPI_BYTE, o.peer, 0, o.comm->mpi, &requests.emplace_back());
      if (o.kind == Operation::kReceive)
        MPI_Irecv(at, bytes, MPI_BYTE, o.peer, 0, o.comm->mpi, &requests.emplace_back());
    });
  for (auto& o : operations) {
    if (o.kind == Operation::kBroadcast)
      for_each_piece(o.data,
                     [&](std::byte* at, int bytes) { MPI_Bcast(at, bytes, MPI_BYTE, o.peer, o.comm->mpi); });
    if (o.kind == Operation::kAllReduce)
      MPI_Allreduce(MPI_IN_PLACE, o.data.data(), static_cast<int>(o.count), mpi_type(o.type),
                    mpi_operation(o.reduction), o.comm->mpi);
  }
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  for (auto& o : operations)
    if (o.kind != Operation::kSend) deliver_later(o.stream, o.receive, std::move(o.data));
}

ncclResult_t enqueue(Operation operation) {
  const auto& o = operation;
  if (o.comm == nullptr || o.peer < 0 || o.peer >= o.comm->ranks) return ncclInvalidArgument;
  if (!espalier_emulation::has_seen_all_copies(o.stream)) {
    std::fprintf(stderr, "emulated NCCL: communication does not wait for what was copied before\n");
    return ncclInvalidUsage;
  }
  if (o.count > 0 && (!good_argument(o.send) || !good_argument(o.receive))) return ncclInvalidArgument;
  group.push_back(std::move(operation));
  if (group_depth > 0) return ncclSuccess;
  ncclGroupStart();
  return ncclGroupEnd();
}

}  // namespace

int espalier_emulated_exchanges() {
  return exchanges;
}

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclSuccess           ? "no error"
         : result == ncclInvalidArgument ? "invalid argument"
         : result == ncclInvalidUsage    ? "invalid usage"
                                         : "unhandled system error";
}
const char* ncclGetLastError(ncclComm_t) {
  return "";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static int serial = 0;
  IdContent content = {0, serial++};
  MPI_Comm_rank(MPI_COMM_WORLD, &content.root);
  std::memcpy(id->internal, &content, sizeof content);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  if (ranks < 1 || rank < 0 || rank >= ranks) return ncclInvalidArgument;
  IdContent content;
  std::memcpy(&content, id.internal, sizeof content);
  const int tag = kTag + content.serial % kTags;
  int me = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  int device = 0;
  cudaGetDevice(&device);
  const int mine[3] = {rank, me, espalier_emulation::bus_of(device)};
  std::vector<int> members(static_cast<std::size_t>(ranks + 1), me);
  int& duplicates = members.back();
  if (me == content.root) {
    std::set<int> places = {mine[2]};
    for (int k = 1; k < ranks; ++k) {
      int theirs[3];  // rank in the group, rank in the world, the place of its GPU on the bus
      MPI_Recv(theirs, 3, MPI_INT, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      members[static_cast<std::size_t>(theirs[0])] = theirs[1];
      places.insert(theirs[2]);
    }
    duplicates = ranks - static_cast<int>(places.size());
    for (int k = 0; k < ranks; ++k)
      if (const int member = members[static_cast<std::size_t>(k)]; member != me)
        MPI_Send(members.data(), ranks + 1, MPI_INT, member, tag + kTags, MPI_COMM_WORLD);
  } else {
    MPI_Send(mine, 3, MPI_INT, content.root, tag, MPI_COMM_WORLD);
    MPI_Recv(members.data(), ranks + 1, MPI_INT, content.root, tag + kTags, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
  }
  if (duplicates > 0) {
    std::fprintf(stderr, "emulated NCCL: ranks have the same GPU\n");
    return ncclInvalidUsage;
  }
  MPI_Group world, of_members;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, ranks, members.data(), &of_members);
  *comm = new ncclComm{MPI_COMM_NULL, rank, ranks};
  const int made = MPI_Comm_create_group(MPI_COMM_WORLD, of_members, tag, &(*comm)->mpi);
  MPI_Group_free(&of_members);
  MPI_Group_free(&world);
  return made == MPI_SUCCESS ? ncclSuccess : ncclSystemError;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  MPI_Comm_free(&comm->mpi);
  delete comm;
  return ncclSuccess;
}
// As the library's may, it waits for the others of the node.
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  MPI_Barrier(comm->mpi);
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* error) {
  *error = ncclSuccess;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++group_depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (group_depth == 0) return ncclInvalidUsage;
  if (--group_depth > 0) return ncclSuccess;
  run(group);
  group.clear();
  return ncclSuccess;
}

ncclResult_t ncclSend(const void* send, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return enqueue({Operation::kSend, send, nullptr, count, type, ncclSum, peer, comm, stream, {}});
}
ncclResult_t ncclRecv(void* receive, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return enqueue({Operation::kReceive, nullptr, receive, count, type, ncclSum, peer, comm, stream, {}});
}
ncclResult_t ncclBroadcast(const void* send, void* receive, std::size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return enqueue({Operation::kBroadcast, send, receive, count, type, ncclSum, root, comm, stream, {}});
}
ncclResult_t ncclAllReduce(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream) {
  return enqueue({Operation::kAllReduce, send, receive, count, type, operation, 0, comm, stream, {}});
}
