# find_package(espalier) gives the target espalier::espalier, the shared library with espalier.h; with COMPONENTS cxx
# also espalier::cxx, the archive with the C++ headers; both by what pkg-config knows.
find_package(PkgConfig REQUIRED)
set(ENV{PKG_CONFIG_PATH} "${CMAKE_CURRENT_LIST_DIR}/../../pkgconfig:$ENV{PKG_CONFIG_PATH}")
pkg_check_modules(ESPALIER REQUIRED IMPORTED_TARGET GLOBAL espalier)
add_library(espalier::espalier INTERFACE IMPORTED)
set_target_properties(espalier::espalier PROPERTIES INTERFACE_LINK_LIBRARIES PkgConfig::ESPALIER)
if("cxx" IN_LIST espalier_FIND_COMPONENTS)
  find_package(MPI REQUIRED COMPONENTS CXX)
  pkg_check_modules(ESPALIER_CXX REQUIRED IMPORTED_TARGET GLOBAL espalier-cxx)
  add_library(espalier::cxx INTERFACE IMPORTED)
  set_target_properties(espalier::cxx PROPERTIES INTERFACE_LINK_LIBRARIES "PkgConfig::ESPALIER_CXX;MPI::MPI_CXX"
    INTERFACE_LINK_DIRECTORIES "${CMAKE_CURRENT_LIST_DIR}/../..")
endif()
