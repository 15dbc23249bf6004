# `cmake --install BUILD --prefix P`: the tool, the libraries with their public headers, the data,
# the
# documents, and the files for find_package(gdr).
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/gdr)
install(TARGETS gdr_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tool)
get_property(gdr_libraries GLOBAL PROPERTY GDR_LIBRARIES)
install(TARGETS ${gdr_libraries} EXPORT gdrTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
# Public headers, which the libraries' CMakeLists.txt list. In the tree an include is a path from
# the root of the project; installed headers omit src/ and start with gdr/.
get_property(gdr_public_headers GLOBAL PROPERTY GDR_PUBLIC_HEADERS)
file(REMOVE_RECURSE ${PROJECT_BINARY_DIR}/include)
foreach(header IN LISTS gdr_public_headers)
  file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${header})
  string(REGEX REPLACE "^src/" "" path ${path})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${header})
  file(READ ${header} text)
  string(REGEX REPLACE "#include \"(src/)?" "#include \"gdr/" text "${text}")
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/include/gdr/${path} CONTENT "${text}" @ONLY)
endforeach()
install(DIRECTORY ${PROJECT_BINARY_DIR}/include/gdr DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
foreach(folder models topologies)
  install(DIRECTORY ${folder} DESTINATION ${CMAKE_INSTALL_DATADIR}/gdr COMPONENT tool)
endforeach()

install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT tool)
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT tool FILES_MATCHING PATTERN "*.md" PATTERN "topology.schema.json")
# The sources of what guests of `gdr emulate` boot. The module's ioctl header is the library's;
# emu/module has a link to it.
install(DIRECTORY emu/guest emu/module DESTINATION ${CMAKE_INSTALL_DATADIR}/gdr/emu COMPONENT tool
        PATTERN gdr_gpu.h EXCLUDE)
install(FILES src/memory/uapi/gdr_gpu.h DESTINATION ${CMAKE_INSTALL_DATADIR}/gdr/emu/module COMPONENT tool)

configure_package_config_file(cmake/gdrConfig.cmake.in ${PROJECT_BINARY_DIR}/gdrConfig.cmake INSTALL_DESTINATION ${package_dir}
                              PATH_VARS CMAKE_INSTALL_DATADIR CMAKE_INSTALL_BINDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/gdrConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/gdrConfig.cmake ${PROJECT_BINARY_DIR}/gdrConfigVersion.cmake cmake/FindSimGrid.cmake
              cmake/gdrEmulatedTest.cmake
        DESTINATION ${package_dir})
install(EXPORT gdrTargets NAMESPACE gdr:: DESTINATION ${package_dir})
