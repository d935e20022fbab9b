// ESPALIER_MPI(call) checks what an MPI call returns (communicators return errors, design 4.5).
#pragma once

#include <mpi.h>

#include <string>

#include "espalier/base/error.hpp"

namespace espalier {

inline std::string mpi_error_text(int code) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  return std::string(text, static_cast<std::size_t>(length));
}

}  // namespace espalier

#define ESPALIER_MPI(call)                                                                              \
  do {                                                                                                  \
    const int espalier_mpi_code = (call);                                                               \
    if (espalier_mpi_code != MPI_SUCCESS) [[unlikely]]                                                  \
      ::espalier::fail_check(__FILE__, __LINE__, #call, ::espalier::mpi_error_text(espalier_mpi_code)); \
  } while (false)
