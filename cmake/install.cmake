# `cmake --install BUILD --prefix P`: the tool, the libraries with their headers, the data, the documents, and the files for find_package(gdr).
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/gdr)
install(TARGETS gdr_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tool)
install(TARGETS ${gdr_libraries} EXPORT gdrTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
# Two header roots, src/ and the project's, become one: an include reads the same in the tree and installed.
install(DIRECTORY src/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/gdr FILES_MATCHING PATTERN "*.hpp" PATTERN cli EXCLUDE)
if(TARGET gdr_sim)
  install(DIRECTORY sim DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/gdr FILES_MATCHING PATTERN "*.hpp")
endif()
install(DIRECTORY emu/fabric DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/gdr/emu FILES_MATCHING PATTERN "*.hpp")
foreach(folder models topologies)
  if(IS_DIRECTORY "${PROJECT_SOURCE_DIR}/${folder}")
    install(DIRECTORY ${folder} DESTINATION ${CMAKE_INSTALL_DATADIR}/gdr COMPONENT tool)
  endif()
endforeach()

install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT tool)
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT tool FILES_MATCHING PATTERN "*.md" PATTERN "topology.schema.json")
# What the guests of `gdr emulate` are made of.
install(DIRECTORY emu/guest emu/module DESTINATION ${CMAKE_INSTALL_DATADIR}/gdr/emu COMPONENT tool)

configure_package_config_file(cmake/gdrConfig.cmake.in ${PROJECT_BINARY_DIR}/gdrConfig.cmake INSTALL_DESTINATION ${package_dir}
                              PATH_VARS CMAKE_INSTALL_DATADIR CMAKE_INSTALL_BINDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/gdrConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/gdrConfig.cmake ${PROJECT_BINARY_DIR}/gdrConfigVersion.cmake cmake/FindSimGrid.cmake
              cmake/gdrEmulatedTest.cmake
        DESTINATION ${package_dir})
install(EXPORT gdrTargets NAMESPACE gdr:: DESTINATION ${package_dir})
