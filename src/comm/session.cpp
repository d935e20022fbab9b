#include "espalier/comm/session.hpp"

#include <omp.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <string>

#include "espalier/base/clock.hpp"
#include "espalier/comm/progress_thread.hpp"
#include "mpi_check.hpp"

namespace espalier {

namespace {

std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "unknown host";
}

const char* memory_advice = "use more ranks, or a machine with more memory";

// Out of memory on one rank ends the job here, before anything unwinds: closing a parallel file,
// for one, is collective, and inside an OpenMP region an exception has nowhere to go.
[[noreturn]] void out_of_memory() {
  std::set_new_handler(nullptr);
  fail_job(ExitCode::kMemory, fmt::format("out of memory; {}", memory_advice));
}

// A rank that is alone has nobody to take along, and MPI's own words about it help nobody.
void abort_job(int code) {
  if (failure_context().ranks == 1) std::_Exit(code);
  MPI_Abort(MPI_COMM_WORLD, code);
}

// What we do not use of Open MPI, and others would wait for; a user's own setting stays.
void prepare_open_mpi() {
  const auto choose = [](const char* name, const char* value) { setenv(name, value, /*overwrite=*/0); };
  // Shared file pointers. Those in shared memory take a semaphore of the node named after the file,
  // without its folder: a process that is killed while it opens one leaves it taken, and every
  // later job that opens a file of that name waits for ever.
  choose("OMPI_MCA_sharedfp", "individual");
  // A program that nobody launched is one rank; the daemon is for ranks that it might spawn.
  choose("OMPI_MCA_ess_singleton_isolated", "1");
}

// Who this process is to those who read its last words.
void introduce() {
  auto& context = failure_context();
  context.host = host_name();
  context.abort_job = abort_job;
  MPI_Comm_rank(MPI_COMM_WORLD, &context.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &context.ranks);
  set_clock({[] { return MPI_Wtime(); }, [](double) {}});
}

Communicator start(int* argc, char*** argv) {
  int provided = 0;
  prepare_open_mpi();
  MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided);
  introduce();
  std::set_new_handler(out_of_memory);
  ESPALIER_CHECK(provided >= MPI_THREAD_FUNNELED || omp_get_max_threads() == 1,
                 "this MPI library does not allow OpenMP threads beside it");
  return Communicator(MPI_COMM_WORLD, false, std::make_shared<Traffic>());
}

}  // namespace

Session::Session(int* argc, char*** argv) : world_(start(argc, argv)) {}

Session::~Session() {
  end_progress_calls();
  MPI_Finalize();
}

bool mpi_is_running() {
  int begun = 0, ended = 0;
  MPI_Initialized(&begun);
  MPI_Finalized(&ended);
  return begun != 0 && ended == 0;
}

std::string mpi_library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  return text;  // Open MPI counts the 0 at its end, too
}

Communicator join_session(std::optional<int> handle) {
  if (!mpi_is_running()) {
    int provided = 0, ended = 0;
    MPI_Finalized(&ended);
    if (ended != 0)
      usage_error("MPI has ended in this process and cannot begin anew; open jobs before{}", "");
    prepare_open_mpi();
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
    std::atexit([] {
      end_progress_calls();
      if (mpi_is_running()) MPI_Finalize();
    });
  }
  introduce();
  failure_context().throws = true;
  const MPI_Comm of = handle ? MPI_Comm_f2c(*handle) : MPI_COMM_WORLD;
  MPI_Comm own = MPI_COMM_NULL;
  ESPALIER_MPI(MPI_Comm_dup(of, &own));
  return Communicator(own, true, std::make_shared<Traffic>());
}

void set_memory_advice(const char* advice) {
  memory_advice = advice;
}

bool threads_may_communicate() {
  int provided = 0;
  ESPALIER_MPI(MPI_Query_thread(&provided));
  return provided == MPI_THREAD_MULTIPLE;
}

// By host name, not by MPI_COMM_TYPE_SHARED: a network simulator gives each rank its own host.
NodePlace place_on_node(const Communicator& world) {
  struct Place {
    HostName host;
    cpu_set_t cores = {};
  } mine;
  sched_getaffinity(0, sizeof mine.cores, &mine.cores);
  const auto all = world.all_gather(mine, "setup");
  // OpenMP counts the cores before it binds the main thread to one of them (OMP_PROC_BIND).
  NodePlace place{0, 0, std::max(omp_get_num_procs(), CPU_COUNT(&mine.cores)), 0};
  for (int r = 0; r < world.size(); ++r) {
    const auto& other = all[r];
    if (other.host != mine.host) continue;
    ++place.ranks;
    if (r < world.rank()) ++place.place;
    if (CPU_EQUAL(&other.cores, &mine.cores)) ++place.sharers;
  }
  return place;
}

bool all_arrive_within(const Communicator& world, double seconds) {
  MPI_Request request = MPI_REQUEST_NULL;
  if (MPI_Ibarrier(world.native(), &request) != MPI_SUCCESS) return false;
  const double deadline = now() + seconds;
  int arrived = 0;
  while (arrived == 0 && now() < deadline) {
    MPI_Test(&request, &arrived, MPI_STATUS_IGNORE);
    if (arrived == 0) usleep(1000);
  }
  return arrived != 0;
}

}  // namespace espalier
