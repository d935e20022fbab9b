# find_package(espalier) gives the target espalier::espalier, by what pkg-config knows.
find_package(MPI REQUIRED COMPONENTS CXX)
find_package(PkgConfig REQUIRED)
set(ENV{PKG_CONFIG_PATH} "${CMAKE_CURRENT_LIST_DIR}/../../pkgconfig:$ENV{PKG_CONFIG_PATH}")
pkg_check_modules(ESPALIER REQUIRED IMPORTED_TARGET GLOBAL espalier)
add_library(espalier::espalier INTERFACE IMPORTED)
set_target_properties(espalier::espalier PROPERTIES INTERFACE_LINK_LIBRARIES "PkgConfig::ESPALIER;MPI::MPI_CXX")
