// Counts what a process receives through MPI, whoever calls it: wrappers over the profiling
// interface (PMPI).
//
// The wrappers of this header replace the functions of the same name in the whole program,
// libraries included, so it may be included by one .cpp file only. Rules as in comm/traffic.hpp:
// bytes from other ranks, what a rank has for itself is not counted; n bytes of
//
//     receive, broadcast, scatter      n by every rank that is not the root
//     all-to-all, all-gather, gather   the bytes of all other ranks
//     all-reduce                       2 n (p-1)/p, a reduce-scatter and an all-gather
//     reduce                           n (p-1)/p by every rank, and as much again by the root
//     scan                             n by every rank but the first
//
// A posted receive counts with its full size. One-sided transfers and file operations are not seen.
#pragma once

#include <mpi.h>

#include <cstdint>

namespace espalier::bench {

/// Received by this rank since the program began.
inline std::int64_t mpi_bytes_received = 0;

namespace detail {
struct Group {
  int rank = 0, size = 1;
  explicit Group(MPI_Comm comm) {
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
  }
};
inline std::int64_t bytes_of(std::int64_t count, MPI_Datatype type) {
  int width = 0;
  PMPI_Type_size(type, &width);
  return count * width;
}
inline void count_received(std::int64_t bytes) {
  mpi_bytes_received += bytes;
}
inline void count_from(int source, std::int64_t count, MPI_Datatype type, MPI_Comm comm) {
  if (source != MPI_PROC_NULL && source != Group(comm).rank) count_received(bytes_of(count, type));
}
inline void count_unless_root(int root, int count, MPI_Datatype type, MPI_Comm comm) {
  if (Group(comm).rank != root) count_received(bytes_of(count, type));
}
inline void count_of_others(int count, MPI_Datatype type, MPI_Comm comm) {
  count_received(bytes_of(count, type) * (Group(comm).size - 1));
}
inline void count_of_others(const int* counts, MPI_Datatype type, MPI_Comm comm) {
  const Group group(comm);
  for (int peer = 0; peer < group.size; ++peer)
    if (peer != group.rank) count_received(bytes_of(counts[peer], type));
}
inline void count_share(int times, std::int64_t count, MPI_Datatype type, MPI_Comm comm) {
  const Group group(comm);
  count_received(times * bytes_of(count, type) * (group.size - 1) / group.size);
}
}  // namespace detail
}  // namespace espalier::bench

// NOLINTBEGIN: names and parameters are MPI's
extern "C" {
using namespace espalier::bench::detail;

int MPI_Recv(void* buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
             MPI_Status* status) {
  MPI_Status mine;
  auto* used = status == MPI_STATUS_IGNORE ? &mine : status;
  const int code = PMPI_Recv(buffer, count, type, source, tag, comm, used);
  PMPI_Get_count(used, type, &count);
  count_from(used->MPI_SOURCE, count, type, comm);
  return code;
}
int MPI_Irecv(void* buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
              MPI_Request* request) {
  count_from(source, count, type, comm);
  return PMPI_Irecv(buffer, count, type, source, tag, comm, request);
}
int MPI_Sendrecv(const void* send, int send_count, MPI_Datatype send_type, int to, int send_tag, void* buffer,
                 int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status* status) {
  MPI_Status mine;
  auto* used = status == MPI_STATUS_IGNORE ? &mine : status;
  const int code =
      PMPI_Sendrecv(send, send_count, send_type, to, send_tag, buffer, count, type, source, tag, comm, used);
  PMPI_Get_count(used, type, &count);
  count_from(used->MPI_SOURCE, count, type, comm);
  return code;
}
int MPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  count_unless_root(root, count, type, comm);
  return PMPI_Bcast(buffer, count, type, root, comm);
}
int MPI_Ibcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* request) {
  count_unless_root(root, count, type, comm);
  return PMPI_Ibcast(buffer, count, type, root, comm, request);
}
int MPI_Scatter(const void* send, int send_count, MPI_Datatype send_type, void* buffer, int count,
                MPI_Datatype type, int root, MPI_Comm comm) {
  count_unless_root(root, count, type, comm);
  return PMPI_Scatter(send, send_count, send_type, buffer, count, type, root, comm);
}
int MPI_Scatterv(const void* send, const int* send_counts, const int* offsets, MPI_Datatype send_type,
                 void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  count_unless_root(root, count, type, comm);
  return PMPI_Scatterv(send, send_counts, offsets, send_type, buffer, count, type, root, comm);
}
int MPI_Gather(const void* send, int send_count, MPI_Datatype send_type, void* buffer, int count,
               MPI_Datatype type, int root, MPI_Comm comm) {
  if (Group(comm).rank == root) count_of_others(count, type, comm);
  return PMPI_Gather(send, send_count, send_type, buffer, count, type, root, comm);
}
int MPI_Gatherv(const void* send, int send_count, MPI_Datatype send_type, void* buffer, const int* counts,
                const int* offsets, MPI_Datatype type, int root, MPI_Comm comm) {
  if (Group(comm).rank == root) count_of_others(counts, type, comm);
  return PMPI_Gatherv(send, send_count, send_type, buffer, counts, offsets, type, root, comm);
}
int MPI_Allgather(const void* send, int send_count, MPI_Datatype send_type, void* buffer, int count,
                  MPI_Datatype type, MPI_Comm comm) {
  count_of_others(count, type, comm);
  return PMPI_Allgather(send, send_count, send_type, buffer, count, type, comm);
}
int MPI_Allgatherv(const void* send, int send_count, MPI_Datatype send_type, void* buffer, const int* counts,
                   const int* offsets, MPI_Datatype type, MPI_Comm comm) {
  count_of_others(counts, type, comm);
  return PMPI_Allgatherv(send, send_count, send_type, buffer, counts, offsets, type, comm);
}
int MPI_Alltoall(const void* send, int send_count, MPI_Datatype send_type, void* buffer, int count,
                 MPI_Datatype type, MPI_Comm comm) {
  count_of_others(count, type, comm);
  return PMPI_Alltoall(send, send_count, send_type, buffer, count, type, comm);
}
int MPI_Alltoallv(const void* send, const int* send_counts, const int* send_offsets, MPI_Datatype send_type,
                  void* buffer, const int* counts, const int* offsets, MPI_Datatype type, MPI_Comm comm) {
  count_of_others(counts, type, comm);
  return PMPI_Alltoallv(send, send_counts, send_offsets, send_type, buffer, counts, offsets, type, comm);
}
int MPI_Allreduce(const void* send, void* buffer, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  count_share(2, count, type, comm);
  return PMPI_Allreduce(send, buffer, count, type, op, comm);
}
int MPI_Reduce(const void* send, void* buffer, int count, MPI_Datatype type, MPI_Op op, int root,
               MPI_Comm comm) {
  count_share(Group(comm).rank == root ? 2 : 1, count, type, comm);
  return PMPI_Reduce(send, buffer, count, type, op, root, comm);
}
int MPI_Reduce_scatter(const void* send, void* buffer, const int* counts, MPI_Datatype type, MPI_Op op,
                       MPI_Comm comm) {
  std::int64_t all = 0;
  for (int peer = 0; peer < Group(comm).size; ++peer) all += counts[peer];
  count_share(1, all, type, comm);
  return PMPI_Reduce_scatter(send, buffer, counts, type, op, comm);
}
int MPI_Scan(const void* send, void* buffer, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  count_unless_root(0, count, type, comm);
  return PMPI_Scan(send, buffer, count, type, op, comm);
}
int MPI_Exscan(const void* send, void* buffer, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  count_unless_root(0, count, type, comm);
  return PMPI_Exscan(send, buffer, count, type, op, comm);
}
}
// NOLINTEND
