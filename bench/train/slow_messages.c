/* MPI calls as on a network where every message takes ESPALIER_MESSAGE_MS longer: a library to be
 * loaded before the MPI library (LD_PRELOAD). A receive is complete no earlier than so long after it
 * was posted, which all ranks do at about the same time; a blocking collective ends so much later.
 * Nothing keeps a rank from computing meanwhile. prefetch.py uses it. */
#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define MOST_PENDING 65536

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  MPI_Request request;
  double due;
} pending[MOST_PENDING];
static int pending_count = 0;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double delay(void) {
  static double seconds = -1;
  if (seconds < 0) seconds = getenv("ESPALIER_MESSAGE_MS") ? 1e-3 * atof(getenv("ESPALIER_MESSAGE_MS")) : 0;
  return seconds;
}

static void sleep_until(double due) {
  for (double left = due - now(); left > 0; left = due - now()) {
    struct timespec t = {(time_t)left, (long)(1e9 * (left - (double)(time_t)left))};
    nanosleep(&t, NULL);
  }
}

/* When the last of these receives may be complete; `forget` those. */
static double due_of(int count, const MPI_Request* requests, int forget) {
  double due = 0;
  pthread_mutex_lock(&lock);
  for (int r = 0; r < count; ++r)
    for (int k = 0; k < pending_count; ++k)
      if (requests[r] != MPI_REQUEST_NULL && pending[k].request == requests[r]) {
        if (pending[k].due > due) due = pending[k].due;
        if (forget) pending[k--] = pending[--pending_count];
      }
  pthread_mutex_unlock(&lock);
  return due;
}

int MPI_Irecv(void* buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
              MPI_Request* request) {
  const int code = PMPI_Irecv(buffer, count, type, source, tag, comm, request);
  pthread_mutex_lock(&lock);
  if (pending_count == MOST_PENDING) abort();
  pending[pending_count].request = *request;
  pending[pending_count++].due = now() + delay();
  pthread_mutex_unlock(&lock);
  return code;
}

int MPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  const double due = due_of(count, requests, 1);
  const int code = PMPI_Waitall(count, requests, statuses);
  sleep_until(due);
  return code;
}

int MPI_Testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  if (due_of(count, requests, 0) > now()) {
    int found; /* lets messages move */
    *flag = 0;
    return PMPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE);
  }
  MPI_Request copies[1024];
  for (int r = 0; r < count && r < 1024; ++r) copies[r] = requests[r];
  const int code = PMPI_Testall(count, requests, flag, statuses);
  if (*flag) due_of(count < 1024 ? count : 1024, copies, 1);
  return code;
}

#define COLLECTIVE(name, parameters, arguments)      \
  int MPI_##name parameters {                        \
    const int code = PMPI_##name arguments;          \
    sleep_until(now() + delay());                    \
    return code;                                     \
  }
COLLECTIVE(Alltoall, (const void* a, int b, MPI_Datatype c, void* d, int e, MPI_Datatype f, MPI_Comm g),
           (a, b, c, d, e, f, g))
COLLECTIVE(Allreduce, (const void* a, void* b, int c, MPI_Datatype d, MPI_Op e, MPI_Comm f), (a, b, c, d, e, f))
COLLECTIVE(Allgather, (const void* a, int b, MPI_Datatype c, void* d, int e, MPI_Datatype f, MPI_Comm g),
           (a, b, c, d, e, f, g))
COLLECTIVE(Bcast, (void* a, int b, MPI_Datatype c, int d, MPI_Comm e), (a, b, c, d, e))
