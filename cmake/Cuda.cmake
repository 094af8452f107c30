# CUDA, cuDNN and NCCL, where there are: ddp_cuda is the target that CUDA code links, and DDP_CUDA says whether it exists.
# Without them the program is built for the CPU only, and says so when somebody asks for a GPU.
#   DDP_CUDA=AUTO  with CUDA where a toolkit is found (the default)
#   DDP_CUDA=ON    a missing piece stops the configuration with its name;   DDP_CUDA=OFF  for the CPU only
set(DDP_CUDA AUTO CACHE STRING "Build the CUDA backend: AUTO, ON or OFF")
set(DDP_CUDNN_FRONTEND ${CMAKE_SOURCE_DIR}/.deps/cudnn-frontend/include CACHE PATH
    "Headers of cudnn-frontend; docker/install.sh unpacks them here")

# Sets DDP_CUDA_MISSING to the first piece that is not there, empty if all are.
macro(ddp_look_for_cuda)
  set(DDP_CUDA_MISSING "")
  include(CheckLanguage)
  if(NOT CMAKE_CUDA_COMPILER)
    # On the path, in its usual place, or put together from PyPI by docker/install.sh.
    find_program(DDP_NVCC nvcc PATHS /usr/local/cuda/bin ${CMAKE_SOURCE_DIR}/.deps/cuda/bin)
    if(DDP_NVCC)
      set(CMAKE_CUDA_COMPILER ${DDP_NVCC} CACHE FILEPATH "CUDA compiler")
    endif()
  endif()
  check_language(CUDA)
  if(NOT CMAKE_CUDA_COMPILER)
    set(DDP_CUDA_MISSING "the CUDA compiler nvcc (CUDA Toolkit 12.8 or newer)")
  else()
    get_filename_component(CUDAToolkit_ROOT ${CMAKE_CUDA_COMPILER} DIRECTORY)
    get_filename_component(CUDAToolkit_ROOT ${CUDAToolkit_ROOT} DIRECTORY)
    find_package(CUDAToolkit 12.8 QUIET)
    find_path(DDP_CUDNN_INCLUDE cudnn_version.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
    find_library(DDP_CUDNN_LIBRARY cudnn HINTS ${CUDAToolkit_LIBRARY_DIR})
    find_path(DDP_NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
    find_library(DDP_NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR})
    if(NOT CUDAToolkit_FOUND)
      set(DDP_CUDA_MISSING "the CUDA Toolkit 12.8 or newer")
    elseif(NOT DDP_CUDNN_INCLUDE OR NOT DDP_CUDNN_LIBRARY)
      set(DDP_CUDA_MISSING "cuDNN 9 (cudnn_version.h and libcudnn)")
    elseif(NOT DDP_NCCL_INCLUDE OR NOT DDP_NCCL_LIBRARY)
      set(DDP_CUDA_MISSING "NCCL 2.20 or newer (nccl.h and libnccl)")
    elseif(NOT EXISTS ${DDP_CUDNN_FRONTEND}/cudnn_frontend.h)
      set(DDP_CUDA_MISSING "the headers of cudnn-frontend (./docker/install.sh unpacks them)")
    endif()
  endif()
endmacro()

if(NOT DDP_CUDA STREQUAL "OFF")
  ddp_look_for_cuda()
  if(DDP_CUDA_MISSING AND DDP_CUDA STREQUAL "ON")
    message(FATAL_ERROR "DDP_CUDA=ON, but this is missing: ${DDP_CUDA_MISSING}.")
  elseif(DDP_CUDA_MISSING)
    message(STATUS "Building for the CPU only: ${DDP_CUDA_MISSING} is missing")
    set(DDP_CUDA OFF)
  else()
    set(DDP_CUDA ON)
  endif()
endif()

set(DDP_CUDA_TARGETS "")
if(DDP_CUDA)
  set(DDP_CUDA_TARGETS ddp_cuda)
  # The GPUs of this machine; elsewhere the data-centre GPUs from Ampere on, with code for newer ones made at run time.
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    if(EXISTS /dev/nvidiactl)
      set(CMAKE_CUDA_ARCHITECTURES native)
    else()
      set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
    endif()
  endif()
  set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
  if(DDP_CCACHE)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${DDP_CCACHE})
  endif()
  enable_language(CUDA)
  # CMake 3.25 does not know that this nvcc has C++20: the flag is given below.
  set(CMAKE_CUDA_STANDARD_REQUIRED OFF)
  add_library(ddp_cuda INTERFACE)
  target_compile_definitions(ddp_cuda INTERFACE DDP_HAS_CUDA)
  target_compile_options(ddp_cuda INTERFACE
    # constexpr functions of the project (random numbers, schedules) are called from kernels too
    # fmt takes nvcc for a compiler without constexpr
    $<$<COMPILE_LANGUAGE:CUDA>:-DFMT_USE_CONSTEXPR=1 -std=c++20 --expt-relaxed-constexpr -Xcompiler=-Wall,-Wextra,-Wno-missing-field-initializers>)
  target_include_directories(ddp_cuda SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS} ${DDP_CUDNN_INCLUDE}
                                                       ${DDP_NCCL_INCLUDE} ${DDP_CUDNN_FRONTEND})
  target_link_libraries(ddp_cuda INTERFACE CUDA::cudart_static CUDA::cublasLt ${CUDA_nvrtc_LIBRARY} ${DDP_CUDNN_LIBRARY}
                                           ${DDP_NCCL_LIBRARY} ${CMAKE_DL_LIBS})
endif()
