# Installs one library into a folder of its own, with its manifest where nobody else writes one (a wheel).

option(GROUPED_MANIFEST "Write manifest.json beside each installed library; needs Ninja" OFF)

function(grouped_install name backend sm)
  set(folder "${backend}-sm_${sm}")
  install(TARGETS ${name} LIBRARY DESTINATION "${folder}")
  if(ARGN)
    install(FILES ${ARGN} DESTINATION "${folder}")
  endif()
  if(GROUPED_MANIFEST)
    if(NOT CMAKE_GENERATOR STREQUAL "Ninja")
      message(FATAL_ERROR "GROUPED_MANIFEST reads what ninja compiled: configure with -G Ninja")
    endif()
    install(CODE "
      execute_process(
        COMMAND \"${Python_EXECUTABLE}\" -B \"${CMAKE_CURRENT_SOURCE_DIR}/cmake/write_manifest.py\"
                --backend ${backend} --arch sm_${sm} --build \"${CMAKE_CURRENT_BINARY_DIR}\"
                --folder \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${folder}\"
                --cxx \"${CMAKE_CXX_COMPILER}\" --cmake \"${CMAKE_COMMAND}\" --ninja \"${CMAKE_MAKE_PROGRAM}\"
        COMMAND_ERROR_IS_FATAL ANY)")
  endif()
endfunction()
