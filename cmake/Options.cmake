# Language level, warnings and build options of the whole project.
option(DDP_BUILD_TESTS "Build the tests" ON)
option(DDP_OPENMP "Compute with OpenMP threads (off under ThreadSanitizer)" ON)
option(DDP_NATIVE "Compile for the processor of this machine" ON)
set(DDP_SANITIZE "" CACHE STRING "Sanitizers to build with: address,undefined or thread")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

find_program(DDP_CCACHE ccache)
if(DDP_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${DDP_CCACHE})
endif()

# Options every target of ours compiles with; generated code (protobuf) does not.
add_library(ddp_options INTERFACE)
target_include_directories(ddp_options INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(ddp_options INTERFACE -Wall -Wextra -Werror -Wshadow -Wsign-conversion
                                             -Wnon-virtual-dtor -Woverloaded-virtual)
if(DDP_NATIVE)
  target_compile_options(ddp_options INTERFACE -march=native)
endif()
if(DDP_SANITIZE)
  add_compile_options(-fsanitize=${DDP_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${DDP_SANITIZE})
endif()
