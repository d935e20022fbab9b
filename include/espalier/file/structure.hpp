// The structure of a file that may be damaged, or be anyone's, read before we rely on it: HDF5 1.10
// believes the lengths and addresses that it reads.
#pragma once

#include <string>

namespace espalier::hdf5 {

/// By one rank, alone: the others follow where it came through. Opens all data sets of the file and
/// the texts that we read of it, guarded (run_crash_guarded); what is wrong otherwise is for who
/// reads them. In a library, whose process is not ours to guard, the program beside it does that
/// (`espalier look-at`, without MPI); where there is none, nobody does. Throws UserError(kInput,
/// message), or ends the job with it.
void check_structure(const std::string& path, const std::string& message);

/// What `espalier look-at PATH` does: an exit code.
int look_at(const std::string& path);

}  // namespace espalier::hdf5
