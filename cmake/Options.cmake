# Language level, warnings and build options of the whole project.
option(DDP_BUILD_TESTS "Build the tests" ON)
option(DDP_OPENMP "Compute with OpenMP threads (off under ThreadSanitizer)" ON)
option(DDP_NATIVE "Compile for the processor of this machine" ON)
option(DDP_PORTABLE "Build programs that run on other machines too: for x86-64-v3, with fmt and spdlog inside" OFF)
set(DDP_SANITIZE "" CACHE STRING "Sanitizers to build with: address,undefined or thread")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_COMPILE_WARNING_AS_ERROR ON)  # a compiler newer than ours: cmake --preset release --compile-no-warning-as-error
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
  message(FATAL_ERROR "ddptrain is C++20 and needs g++ 12 or newer; ${CMAKE_CXX_COMPILER} is "
                      "${CMAKE_CXX_COMPILER_VERSION}. Debian 12 and Ubuntu 24.04 have it: apt-get install build-essential")
endif()

find_program(DDP_CCACHE ccache)
if(DDP_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${DDP_CCACHE})
endif()

# Options every target of ours compiles with; generated code (protobuf) does not.
add_library(ddp_options INTERFACE)
target_include_directories(ddp_options INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(ddp_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wsign-conversion -Wnon-virtual-dtor -Woverloaded-virtual
                            # designated initialisers leave the other members at their defaults
                            -Wno-missing-field-initializers
                            # errno of math functions keeps loops with sqrt scalar
                            -fno-math-errno>)
if(DDP_PORTABLE)
  target_compile_options(ddp_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-march=x86-64-v3>)
elseif(DDP_NATIVE)
  target_compile_options(ddp_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-march=native>)
endif()
if(DDP_SANITIZE)
  # With sanitizers g++ sees uninitialised values where there are none.
  add_compile_options(-fsanitize=${DDP_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer
                      -Wno-maybe-uninitialized)
  add_link_options(-fsanitize=${DDP_SANITIZE})
endif()
