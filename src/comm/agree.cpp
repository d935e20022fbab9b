#include "espalier/comm/agree.hpp"

namespace espalier {

void agree(const Communicator& comm, const std::function<void()>& work) {
  ExitCode code = ExitCode::kDone;
  std::string message;
  try {
    work();
  } catch (const UserError& error) {
    code = error.code();
    message = error.what();
  } catch (const std::exception& error) {
    // A library's exception: not the user's error, but everyone's end.
    code = ExitCode::kInternal;
    message = error.what();
  }
  const int failed = code == ExitCode::kDone ? comm.size() : comm.rank();
  const int first = comm.all_reduce(failed, Reduction::kMin, "agree");
  if (first == comm.size()) return;
  auto number = static_cast<std::int32_t>(code);
  comm.broadcast(std::span<std::int32_t>(&number, 1), first, "agree");
  throw UserError(static_cast<ExitCode>(number), comm.broadcast_text(message, first, "agree"));
}

}  // namespace espalier
