# gdr_library(name [PRIVATE] [RECURSE] [EXCLUDE regex] [LINK target...] [PRIVATE_LINK target...]
#             [HEADERS header...])
#
# Adds a library gdr_NAME from the sources in the current folder and, with RECURSE, in the folders
# below it, without the paths that match EXCLUDE. It is installed as gdr::NAME unless it is PRIVATE.
# HEADERS are its public headers; no others are installed. Every include is a path from the root of
# the project; installed headers omit `src/` and start with `gdr/`: <gdr/topology/topology.hpp>,
# <gdr/sim/predict.hpp>.
function(gdr_library name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "RECURSE;PRIVATE" "EXCLUDE" "LINK;PRIVATE_LINK;HEADERS")
  if(ARG_RECURSE)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS *.cpp)
  else()
    file(GLOB sources CONFIGURE_DEPENDS *.cpp)
  endif()
  if(ARG_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX ${ARG_EXCLUDE})
  endif()
  add_library(gdr_${name} STATIC ${sources})
  add_library(gdr::${name} ALIAS gdr_${name})
  set_target_properties(gdr_${name} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(gdr_${name} PUBLIC cxx_std_20)
  target_include_directories(gdr_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                                $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(gdr_${name} PUBLIC ${ARG_LINK} PRIVATE ${ARG_PRIVATE_LINK})
  if(ARG_PRIVATE)
    return()
  endif()
  set_property(GLOBAL APPEND PROPERTY GDR_LIBRARIES gdr_${name})
  list(TRANSFORM ARG_HEADERS PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  set_property(GLOBAL APPEND PROPERTY GDR_PUBLIC_HEADERS ${ARG_HEADERS})
endfunction()
