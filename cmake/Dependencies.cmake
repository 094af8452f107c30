# Every library the build needs. A missing one stops the configuration with the Debian/Ubuntu package that brings it.
function(ddp_missing what package)
  message(FATAL_ERROR "ddptrain needs ${what}, which was not found.\n"
                      "  Install it:   apt-get install ${package}\n"
                      "  Or all that ddptrain needs at once:   ./docker/install.sh")
endfunction()

macro(ddp_find name package)
  find_package(${name} QUIET ${ARGN})
  if(NOT ${name}_FOUND)
    ddp_missing("${name}" "${package}")
  endif()
endmacro()

# A package can be found although the part that we call is not installed.
function(ddp_need target what package)
  if(NOT TARGET ${target})
    ddp_missing("${what}" "${package}")
  endif()
endfunction()

ddp_find(Threads build-essential)
ddp_find(fmt libfmt-dev)
ddp_find(spdlog libspdlog-dev)
if(DDP_PORTABLE)
  set(DDP_LOG_LIBRARIES fmt::fmt-header-only spdlog::spdlog_header_only)
else()
  set(DDP_LOG_LIBRARIES fmt::fmt spdlog::spdlog)
endif()
ddp_find(CLI11 libcli11-dev)
ddp_find(nlohmann_json nlohmann-json3-dev)
ddp_find(ZLIB zlib1g-dev)
set(MPI_CXX_SKIP_MPICXX ON)  # the deprecated C++ bindings
ddp_find(MPI libopenmpi-dev COMPONENTS CXX)
if(NOT MPIEXEC_EXECUTABLE)
  ddp_missing("mpirun" openmpi-bin)
endif()
ddp_find(Protobuf libprotobuf-dev)
ddp_need(protobuf::protoc "the Protobuf compiler protoc" protobuf-compiler)
if(DDP_BUILD_TESTS)
  ddp_find(GTest libgtest-dev)
  ddp_need(GTest::gmock "GoogleMock" libgmock-dev)
endif()

# OpenBLAS comes in variants, of which Debian makes one the system's libopenblas. The OpenMP variant shares its threads
# with our own loops, so it is linked from its own folder; that folder becomes the run path, which keeps the choice.
find_path(DDP_OPENBLAS_INCLUDE cblas.h PATH_SUFFIXES openblas-openmp openblas)
find_library(DDP_OPENBLAS_LIBRARY openblas PATH_SUFFIXES openblas-openmp)
if(NOT DDP_OPENBLAS_INCLUDE OR NOT DDP_OPENBLAS_LIBRARY)
  ddp_missing("OpenBLAS" libopenblas-openmp-dev)
endif()
add_library(ddp_blas INTERFACE)
target_include_directories(ddp_blas SYSTEM INTERFACE ${DDP_OPENBLAS_INCLUDE})
target_link_libraries(ddp_blas INTERFACE ${DDP_OPENBLAS_LIBRARY})

find_path(DDP_XXHASH_INCLUDE xxhash.h)
if(NOT DDP_XXHASH_INCLUDE)
  ddp_missing("xxHash" "libxxhash-dev")
endif()
add_library(ddp_xxhash INTERFACE)
target_include_directories(ddp_xxhash SYSTEM INTERFACE ${DDP_XXHASH_INCLUDE})
target_compile_definitions(ddp_xxhash INTERFACE XXH_INLINE_ALL)

add_library(ddp_openmp INTERFACE)
if(DDP_OPENMP)
  ddp_find(OpenMP build-essential COMPONENTS CXX)
  target_link_libraries(ddp_openmp INTERFACE OpenMP::OpenMP_CXX)
endif()

# Protobuf messages of core/config, core/telemetry and models, compiled without our warnings.
add_library(ddp_protobuf STATIC)
target_sources(ddp_protobuf PRIVATE core/config/train.proto core/telemetry/event.proto models/model.proto)
protobuf_generate(TARGET ddp_protobuf IMPORT_DIRS ${CMAKE_SOURCE_DIR} PROTOC_OUT_DIR ${CMAKE_BINARY_DIR}/generated)
target_include_directories(ddp_protobuf SYSTEM PUBLIC ${CMAKE_BINARY_DIR}/generated ${Protobuf_INCLUDE_DIRS})
target_link_libraries(ddp_protobuf PUBLIC protobuf::libprotobuf)
set_target_properties(ddp_protobuf PROPERTIES COMPILE_WARNING_AS_ERROR OFF)
