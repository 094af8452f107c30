# What core/base/version.cpp says about this build. A new commit configures again, so that the commit is never stale.
function(ddp_git result)
  execute_process(COMMAND git ${ARGN} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} OUTPUT_VARIABLE output ERROR_QUIET
                  RESULT_VARIABLE status OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT status EQUAL 0)
    set(output "")
  endif()
  set(${result} "${output}" PARENT_SCOPE)
endfunction()

ddp_git(DDP_TOP rev-parse --show-toplevel)
set(DDP_COMMIT "unknown")
if(DDP_TOP STREQUAL CMAKE_SOURCE_DIR)  # not the repository of somebody who keeps our source inside theirs
  ddp_git(DDP_HEAD rev-parse HEAD)
  ddp_git(DDP_HEAD_LOG rev-parse --git-path logs/HEAD)
  if(DDP_HEAD)
    set(DDP_COMMIT "${DDP_HEAD}")
  endif()
  if(DDP_HEAD_LOG)
    get_filename_component(DDP_HEAD_LOG "${DDP_HEAD_LOG}" ABSOLUTE BASE_DIR ${CMAKE_SOURCE_DIR})
    if(EXISTS "${DDP_HEAD_LOG}")
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${DDP_HEAD_LOG}")
    endif()
  endif()
endif()
set_source_files_properties(
  ${CMAKE_SOURCE_DIR}/core/base/version.cpp
  PROPERTIES COMPILE_DEFINITIONS "DDP_VERSION=\"${PROJECT_VERSION}\";DDP_COMMIT=\"${DDP_COMMIT}\";DDP_COMPILER=\"${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}\"")
