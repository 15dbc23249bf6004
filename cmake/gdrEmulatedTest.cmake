# gdr_add_emulated_test(NAME name TOPOLOGY file
#                       (TARGET target | COMMAND program [argument...] | ON host "shell command"
# [host "shell command"...]
#                        | OUTSIDE program [argument...])
#                       [ARGUMENTS argument...] [OPTIONS option...] [TIMEOUT seconds] [LABELS
# label...])
#
# Adds a test that runs in the guests of `gdr emulate`: TARGET or COMMAND on every host of the
# topology, ON on the named hosts, OUTSIDE on this machine, with the guests' name in GDR_GUESTS for
# `gdr emulate in $GDR_GUESTS --fault ...`. Tests with the same TOPOLOGY and OPTIONS (those of `gdr
# emulate up`, such as --fault) share their guests and run one at a time; CTest fixtures start the
# guests before the first test and end them after the last. The test fails when the command fails on
# any host. A relative file name is searched in the source folder, then in gdr's topologies. TIMEOUT
# applies to the command (default 300); guests get 600 to start. gdr_EXECUTABLE is the tool.
function(gdr_add_emulated_test)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "NAME;TOPOLOGY;TARGET;TIMEOUT" "COMMAND;ON;OUTSIDE;ARGUMENTS;OPTIONS;LABELS")
  set(modes 0)
  foreach(mode TARGET COMMAND ON OUTSIDE)
    if(DEFINED ARG_${mode})
      math(EXPR modes "${modes} + 1")
    endif()
  endforeach()
  if(NOT ARG_NAME OR NOT ARG_TOPOLOGY OR NOT modes EQUAL 1 OR ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "gdr_add_emulated_test: needs NAME, TOPOLOGY and one of TARGET, COMMAND, ON, OUTSIDE; got ${ARGV}")
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()

  set(topology ${ARG_TOPOLOGY})
  if(NOT IS_ABSOLUTE ${topology})
    set(topology ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_TOPOLOGY})
    if(NOT EXISTS ${topology} AND EXISTS ${gdr_DATA_DIR}/topologies/${ARG_TOPOLOGY})
      set(topology ${gdr_DATA_DIR}/topologies/${ARG_TOPOLOGY})
    endif()
  endif()
  if(NOT EXISTS ${topology})
    message(FATAL_ERROR "gdr_add_emulated_test(${ARG_NAME}): there is no topology ${ARG_TOPOLOGY}")
  endif()

  # Keep the guests of different build trees apart.
  string(MD5 hash "${CMAKE_BINARY_DIR};${topology};${ARG_OPTIONS}")
  string(SUBSTRING ${hash} 0 8 hash)
  cmake_path(GET topology STEM guests)
  string(APPEND guests -${hash})
  get_property(known GLOBAL PROPERTY gdr_emulated_guests)
  if(NOT guests IN_LIST known)
    set_property(GLOBAL APPEND PROPERTY gdr_emulated_guests ${guests})
    add_test(NAME gdr-up.${guests} COMMAND ${gdr_EXECUTABLE} emulate up ${guests} ${topology} --replace --timeout 600s ${ARG_OPTIONS}
             WORKING_DIRECTORY ${CMAKE_BINARY_DIR})
    set_tests_properties(gdr-up.${guests} PROPERTIES FIXTURES_SETUP ${guests} TIMEOUT 660 LABELS "${ARG_LABELS}")
    add_test(NAME gdr-down.${guests} COMMAND ${gdr_EXECUTABLE} emulate down ${guests})
    set_tests_properties(gdr-down.${guests} PROPERTIES FIXTURES_CLEANUP ${guests} TIMEOUT 60 LABELS "${ARG_LABELS}")
  endif()

  set(run ${gdr_EXECUTABLE} emulate in ${guests} --timeout ${ARG_TIMEOUT}s)
  if(ARG_ON)
    list(LENGTH ARG_ON words)
    math(EXPR odd "${words} % 2")
    if(odd)
      message(FATAL_ERROR "gdr_add_emulated_test(${ARG_NAME}): ON takes pairs of a host and a shell command")
    endif()
    unset(host)
    foreach(word IN LISTS ARG_ON)
      if(NOT DEFINED host)
        set(host ${word})
        continue()
      endif()
      string(REPLACE ";" "\\;" word "${word}")  # this semicolon is the shell's, not a list's
      list(APPEND run --on ${host} "${word}")
      unset(host)
    endforeach()
  elseif(ARG_OUTSIDE)
    set(run "${ARG_OUTSIDE}")
  elseif(ARG_TARGET)
    list(APPEND run -- $<TARGET_FILE:${ARG_TARGET}>)
  else()
    list(APPEND run -- "${ARG_COMMAND}")  # quoted to keep semicolons within words
  endif()
  if(ARG_ARGUMENTS)
    list(APPEND run "${ARG_ARGUMENTS}")
  endif()
  add_test(NAME ${ARG_NAME} COMMAND ${run} WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
  math(EXPR limit "${ARG_TIMEOUT} + 60")
  set_tests_properties(${ARG_NAME} PROPERTIES FIXTURES_REQUIRED ${guests} RESOURCE_LOCK ${guests} TIMEOUT ${limit} LABELS "${ARG_LABELS}"
                       ENVIRONMENT GDR_GUESTS=${guests})
endfunction()
