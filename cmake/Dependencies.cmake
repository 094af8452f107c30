# Every library the build needs. A missing one stops the configuration with the Debian/Ubuntu package that brings it.
function(ddp_missing what package)
  message(FATAL_ERROR "ddptrain needs ${what}, which was not found.\n"
                      "  Install it:   apt-get install ${package}\n"
                      "  Or install everything at once: ./demo.sh")
endfunction()

macro(ddp_find name package)
  find_package(${name} QUIET ${ARGN})
  if(NOT ${name}_FOUND)
    ddp_missing("${name}" "${package}")
  endif()
endmacro()

ddp_find(Threads build-essential)
ddp_find(fmt libfmt-dev)
ddp_find(spdlog libspdlog-dev)
ddp_find(CLI11 libcli11-dev)
ddp_find(nlohmann_json nlohmann-json3-dev)
ddp_find(ZLIB zlib1g-dev)
ddp_find(MPI "libopenmpi-dev openmpi-bin" COMPONENTS CXX)
ddp_find(Protobuf "protobuf-compiler libprotobuf-dev")
if(DDP_BUILD_TESTS)
  ddp_find(GTest "libgtest-dev libgmock-dev")
endif()

# OpenBLAS and xxHash ship pkg-config files or none at all: look for header and library.
function(ddp_library target header library package)
  find_path(${target}_INCLUDE ${header} PATH_SUFFIXES ${ARGN})
  find_library(${target}_LIBRARY ${library} PATH_SUFFIXES ${ARGN})
  if(NOT ${target}_INCLUDE OR NOT ${target}_LIBRARY)
    ddp_missing("${library}" "${package}")
  endif()
  add_library(${target} INTERFACE)
  target_include_directories(${target} SYSTEM INTERFACE ${${target}_INCLUDE})
  target_link_libraries(${target} INTERFACE ${${target}_LIBRARY})
endfunction()
ddp_library(ddp_blas cblas.h openblas libopenblas-openmp-dev openblas-openmp openblas)

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

# Protobuf messages of core/config, compiled without our warnings.
add_library(ddp_protobuf STATIC)
target_sources(ddp_protobuf PRIVATE core/config/train.proto)
protobuf_generate(TARGET ddp_protobuf IMPORT_DIRS ${CMAKE_SOURCE_DIR} PROTOC_OUT_DIR ${CMAKE_BINARY_DIR}/generated)
target_include_directories(ddp_protobuf SYSTEM PUBLIC ${CMAKE_BINARY_DIR}/generated ${Protobuf_INCLUDE_DIRS})
target_link_libraries(ddp_protobuf PUBLIC protobuf::libprotobuf)
