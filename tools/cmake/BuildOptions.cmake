# Flags for every target of the project; third-party targets keep their own.
add_library(metaldoctor_options INTERFACE)
target_include_directories(metaldoctor_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(metaldoctor_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wimplicit-fallthrough -Wconversion -Wno-sign-conversion>)
# An empty optional or an index past the end stops the program, in Release too: the files read here
# are not trusted, and an optimised build must not pass where the standard leaves it undefined.
target_compile_definitions(metaldoctor_options INTERFACE _GLIBCXX_ASSERTIONS)
if(METALDOCTOR_WERROR)
  target_compile_options(metaldoctor_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(METALDOCTOR_SANITIZE OR METALDOCTOR_FUZZ)
  target_compile_options(metaldoctor_options INTERFACE
    -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(metaldoctor_options INTERFACE -fsanitize=address,undefined)
endif()
if(METALDOCTOR_FUZZ)
  target_compile_options(metaldoctor_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# metaldoctor_precompile(<target> [<header>...]): the headers that most of a target's files include.
# Parsing nlohmann/json, fmt and the containers takes longer than the rest of a typical file
# (tables/: 71 s of processor time without, 42 s with).
function(metaldoctor_precompile target)
  target_link_libraries(${target} PRIVATE fmt::fmt nlohmann_json::nlohmann_json tl::expected)
  target_precompile_headers(${target} PRIVATE
    <algorithm> <array> <cstdint> <map> <memory> <optional> <set> <string> <string_view> <vector>
    <fmt/format.h> <nlohmann/json.hpp> <tl/expected.hpp> ${ARGN})
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    # ccache compares contents; a time stamp in the file would make every build a miss.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>)
  endif()
endfunction()

# metaldoctor_library(<name> [PLAIN] SOURCES <file>... [DEPENDS <room library>...])
# PLAIN: without precompiled headers, for what is also compiled freestanding.
function(metaldoctor_library name)
  cmake_parse_arguments(ARG "PLAIN" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC metaldoctor_options ${ARG_DEPENDS})
  if(NOT ARG_PLAIN)
    metaldoctor_precompile(${name})
  endif()
endfunction()
