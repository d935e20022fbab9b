#!/usr/bin/env bash
# Finds what the build lacks and installs it with apt; where that is not possible, prints what to ask for.
#
#   scripts/install_deps.sh            installs with apt as root or by `sudo -n`; silent when nothing is missing
#   scripts/install_deps.sh --check    only reports, CUDA included
#   scripts/install_deps.sh --simulator   SimGrid, for `make simulate` alone; 1 where it is missing in the end
#
# On Debian and its kin dpkg knows what is there. What dpkg lacks and apt cannot bring may still come from a module or
# from Spack, so it is looked for as on any other system: headers by asking the compiler (CPATH and pkg-config count),
# programs by PATH, Python modules by asking python3. CUDA is optional and never installed here.
# Exit codes: 0 the program can be built, 1 something it needs is missing, 2 usage.
set -uo pipefail

MIN_GCC=12

# what | Debian package | Spack package | usual module name | how to see it without dpkg
NEEDS="\
C++20 compiler (GCC >= $MIN_GCC) | g++ | gcc@$MIN_GCC: | gcc | compiler
make | make | gmake | - | program make
pkg-config | pkg-config | pkgconf | pkgconf | program pkg-config
MPI launcher | openmpi-bin | openmpi | openmpi | program mpirun srun
MPI compiler and headers | libopenmpi-dev | openmpi | openmpi | mpi
HDF5, built with MPI | libhdf5-openmpi-dev | hdf5+mpi | hdf5-parallel | hdf5
Google Benchmark | libbenchmark-dev | benchmark | - | header benchmark/benchmark.h
GoogleTest | libgtest-dev | googletest | googletest | header gtest/gtest.h
toml++ | libtomlplusplus-dev | tomlplusplus | - | header toml++/toml.h
CLI11 | libcli11-dev | cli11 | - | header CLI/CLI.hpp
spdlog | libspdlog-dev | spdlog | spdlog | header spdlog/spdlog.h
fmt | libfmt-dev | fmt | fmt | header fmt/core.h
OpenBLAS | libopenblas-dev | openblas | openblas | header cblas.h
Eigen | libeigen3-dev | eigen | eigen | header Eigen/Core
CombBLAS | libcombblas-dev | combblas | - | header CombBLAS/CombBLAS.h
METIS | libmetis-dev | metis | metis | header metis.h
liburing | liburing-dev | liburing | - | header liburing.h
zlib | zlib1g-dev | zlib | zlib | header zlib.h
libzip | libzip-dev | libzip | libzip | header zip.h
zstd | libzstd-dev | zstd | zstd | header zstd.h
Random123 | librandom123-dev | random123 | - | header Random123/philox.h
JSON for Modern C++ | nlohmann-json3-dev | nlohmann-json | - | header nlohmann/json.hpp
Python 3 | python3 | python@3 | python | program python3
NumPy | python3-numpy | py-numpy | python, scipy-stack | python numpy
h5py | python3-h5py | py-h5py | h5py | python h5py
SciPy | python3-scipy | py-scipy | python, scipy-stack | python scipy
Matplotlib | python3-matplotlib | py-matplotlib | python, scipy-stack | python matplotlib
clang-format | clang-format | llvm+clang | llvm | program clang-format"

# What the tests, benches and checks need beyond the program itself, METIS, which one command can use, and liburing, by which
# rows on disk come sooner: their absence is said, but stops no build.
FOR_TESTS="\
libbenchmark-dev
libgtest-dev
libopenblas-dev
libeigen3-dev
libcombblas-dev
libmetis-dev
liburing-dev
python3
python3-numpy
python3-h5py
python3-scipy
python3-matplotlib
clang-format"

SIMULATOR=libsimgrid-dev

# package_names: the Debian names of all needs, which serve as their keys
package_names() { awk -F ' [|] ' '{print $2}' <<<"$NEEDS"; }

# ---- What is there ---------------------------------------------------------------------------------------------------

compiler_is_new_enough() {
  local version
  version=$("${CXX:-g++}" -dumpversion 2>/dev/null) && [ "${version%%.*}" -ge "$MIN_GCC" ]
}

# Of the packages named, those that dpkg calls installed; g++ only where it is new enough.
installed_by_dpkg() {
  dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null | while read -r status package; do
    [ "$status" = installed ] || continue
    [ "$package" != g++ ] || compiler_is_new_enough || continue
    echo "$package"
  done
}

# stdin "package header" lines, stdout a source that keeps a line for each header there is (HDF5: if built with MPI).
header_questions() {
  local package header
  while read -r package header; do
    printf '#if __has_include(<%s>)\n' "$header"
    [ "$header" != hdf5.h ] || printf '#include <H5pubconf.h>\n#endif\n#ifdef H5_HAVE_PARALLEL\n'
    printf 'espalier_found "%s"\n#endif\n' "$package"
  done
}

include_flags() {
  local package
  for package in openblas eigen3 hdf5-openmpi hdf5; do pkg-config --cflags "$package" 2>/dev/null; done
}

# stdin "package header" lines, stdout the packages whose header the compiler sees: one run of the preprocessor.
found_headers() {
  local compiler=${MPICXX:-mpicxx} flags
  command -v "$compiler" >/dev/null || compiler=${CXX:-g++}
  read -ra flags < <(include_flags | xargs)
  header_questions | "$compiler" -std=c++20 "${flags[@]}" -E -P -x c++ - 2>/dev/null |
    sed -n 's/^ *espalier_found "\(.*\)"$/\1/p'
}

# stdin "package module" lines, stdout the packages whose module python3 can import.
found_python_modules() {
  python3 -c '
import importlib.util, sys
for line in sys.stdin:
    package, module = line.split()
    if importlib.util.find_spec(module):
        print(package)' 2>/dev/null
}

# Of all needs, those that are visible without dpkg.
found_by_looking() {
  local package probe kind arguments name
  local headers="" modules=""
  while IFS='|' read -r _ package _ _ probe; do
    package=${package// /}
    read -r kind arguments <<<"$probe"
    case $kind in
      compiler) compiler_is_new_enough && echo "$package" ;;
      program) for name in $arguments; do command -v "$name" >/dev/null && echo "$package" && break; done ;;
      mpi) "${MPICXX:-mpicxx}" --version >/dev/null 2>&1 && headers+="$package mpi.h"$'\n' ;;
      hdf5) headers+="$package hdf5.h"$'\n' ;;
      header) headers+="$package $arguments"$'\n' ;;
      python) modules+="$package $arguments"$'\n' ;;
    esac
  done <<<"$NEEDS"
  printf '%s' "$headers" | found_headers
  printf '%s' "$modules" | found_python_modules
}

# without LIST: the lines of stdin that are not lines of LIST
without() { grep -vxF -f <(printf '%s\n' "$1") || true; }

missing_for_dpkg() {
  local names
  mapfile -t names < <(package_names)
  package_names | without "$(installed_by_dpkg "${names[@]}")"
}

# ---- apt -------------------------------------------------------------------------------------------------------------

AS_ROOT=()
can_be_root() {
  [ "$(id -u)" = 0 ] && return 0
  AS_ROOT=(sudo -n)
  sudo -n true 2>/dev/null
}

run_apt() {
  "${AS_ROOT[@]}" env LC_ALL=C DEBIAN_FRONTEND=noninteractive \
    apt-get -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" >"$LOG" 2>&1 </dev/null
}

# The wait for dpkg's lock does not cover the lists' lock, so another apt-get update is waited for here.
refresh_lists() {
  local tries
  for ((tries = 0; tries < 30; ++tries)); do
    run_apt -o APT::Update::Error-Mode=any update && return 0
    grep -q 'Could not get lock' "$LOG" || break
    sleep 10
  done
  echo "install_deps.sh: apt-get update failed: $(grep -m 1 '^[EW]:' "$LOG")" >&2
}

# Of the packages named, those that apt could install; another release may lack some.
offered_by_apt() {
  LC_ALL=C apt-cache policy "$@" 2>/dev/null |
    awk '/^[^ ]/ {name = substr($1, 1, length($1) - 1)} /^  Candidate:/ && $2 != "(none)" {print name}'
}

install_with_apt() {
  local offered unknown
  LOG=$(mktemp) || return 1
  trap 'rm -f "$LOG"' EXIT
  refresh_lists
  mapfile -t offered < <(offered_by_apt "$@")
  unknown=$(printf '%s\n' "$@" | without "$(printf '%s\n' "${offered[@]}")")
  [ -z "$unknown" ] || echo "install_deps.sh: apt does not know ${unknown//$'\n'/ }" >&2
  [ ${#offered[@]} -gt 0 ] || return 1
  echo "install_deps.sh: installing ${offered[*]}"
  run_apt install -y --no-install-recommends "${offered[@]}" && return 0
  echo "install_deps.sh: apt-get install failed:" >&2
  tail -n 5 "$LOG" >&2
  return 1
}

# ---- Report ----------------------------------------------------------------------------------------------------------

cuda_status() {
  local nvcc
  nvcc=$(command -v nvcc || command -v "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc") ||
    { echo "not found"; return; }
  echo "found: $nvcc, $("$nvcc" --version | sed -n 's/.*release \([0-9.]*\).*/\1/p')"
}

print_row() { printf '  %-30s | %-20s | %-16s | %s\n' "$@"; }

print_table() {
  local what package spack module
  print_row "what" "Debian package" "Spack package" "usual module name"
  while IFS='|' read -r what package spack module _; do
    package=${package// /}
    grep -qxF "$package" <<<"$1" && print_row "${what% }" "$package" "${spack// /}" "$(xargs <<<"$module")"
  done <<<"$NEEDS"
  print_row "CUDA toolkit >= 12 (optional)" "-" "cuda@12:" "cuda (nvcc $(cuda_status))"
}

report_missing() {
  echo "install_deps.sh: missing, to be installed or loaded as a module:"
  print_table "$1"
  command -v apt-get >/dev/null && echo "as root: apt-get install --no-install-recommends ${1//$'\n'/ }"
}

# Silent when it is there; nothing else needs it.
install_simulator() {
  command -v smpicxx >/dev/null && command -v smpirun >/dev/null && return 0
  command -v apt-get >/dev/null && can_be_root && install_with_apt "$SIMULATOR"
  command -v smpicxx >/dev/null && command -v smpirun >/dev/null
}

main() {
  local option=${1:-} missing names
  case "$#$option" in
    0 | 1--check) ;;
    1--simulator) install_simulator; return ;;
    *) echo "usage: scripts/install_deps.sh [--check | --simulator]" >&2; return 2 ;;
  esac

  # 1. What does dpkg lack? Elsewhere everything is yet to be found.
  missing=$(missing_for_dpkg)

  # 2. Let apt bring it.
  if [ -n "$missing" ] && [ -z "$option" ] && command -v apt-get >/dev/null && can_be_root; then
    mapfile -t names <<<"$missing"
    install_with_apt "${names[@]}"
    missing=$(missing_for_dpkg)
  fi

  # 3. Look for the rest where modules and Spack put it.
  [ -z "$missing" ] || missing=$(without "$(found_by_looking)" <<<"$missing")

  # 4. Say what remains.
  if [ -n "$missing" ]; then
    report_missing "$missing"
    [ -n "$(without "$FOR_TESTS" <<<"$missing")" ] && return 1
    echo "install_deps.sh: the program builds without these; tests, benches and checks need them, \`partition --method metis\` METIS, fast reads of rows on disk liburing"
  fi
  [ -z "$option" ] || echo "install_deps.sh: nothing is missing; CUDA toolkit (optional): nvcc $(cuda_status)"
}

main "$@"
