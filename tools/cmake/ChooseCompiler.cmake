# The compiler is clang 22 unless the caller chose one: it is what builds the in-guest files,
# what libFuzzer needs, and what the checks in .ci/run were written against.
if(NOT DEFINED CMAKE_CXX_COMPILER AND NOT DEFINED ENV{CXX})
  find_program(METALDOCTOR_CLANGXX NAMES clang++-22)
  find_program(METALDOCTOR_CLANG NAMES clang-22)
  if(METALDOCTOR_CLANGXX AND METALDOCTOR_CLANG)
    set(CMAKE_C_COMPILER ${METALDOCTOR_CLANG})
    set(CMAKE_CXX_COMPILER ${METALDOCTOR_CLANGXX})
  endif()
endif()
find_program(METALDOCTOR_CCACHE ccache)
if(METALDOCTOR_CCACHE)
  # What ccache needs to know about precompiled headers.
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      ${METALDOCTOR_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()
