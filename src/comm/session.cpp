#include "espalier/comm/session.hpp"

#include <unistd.h>

#include <array>
#include <string>

#include "espalier/base/clock.hpp"
#include "mpi_check.hpp"

namespace espalier {

namespace {

std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "unknown host";
}

Communicator start(int* argc, char*** argv) {
  int provided = 0;
  MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided);
  auto& context = failure_context();
  context.host = host_name();
  context.abort_job = [](int code) { MPI_Abort(MPI_COMM_WORLD, code); };
  MPI_Comm_rank(MPI_COMM_WORLD, &context.rank);
  set_clock({[] { return MPI_Wtime(); }, [](double) {}});
  ESPALIER_CHECK(provided >= MPI_THREAD_FUNNELED, "this MPI library does not allow OpenMP threads beside it");
  return Communicator(MPI_COMM_WORLD, false, std::make_shared<Traffic>());
}

}  // namespace

Session::Session(int* argc, char*** argv) : world_(start(argc, argv)) {}

Session::~Session() { MPI_Finalize(); }

// By host name, not by MPI_COMM_TYPE_SHARED: a network simulator puts every rank on a host of its own.
NodePlace place_on_node(const Communicator& world) {
  constexpr std::size_t kLength = 256;
  std::array<char, kLength> mine{};
  host_name().copy(mine.data(), kLength - 1);
  const auto all = world.all_gather(mine, "start");
  NodePlace place{0, 0};
  for (int r = 0; r < world.size(); ++r) {
    if (all[static_cast<std::size_t>(r)] != mine) continue;
    ++place.ranks;
    if (r < world.rank()) ++place.place;
  }
  return place;
}

}  // namespace espalier
