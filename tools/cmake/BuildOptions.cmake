# Flags for every target of the project; third-party targets keep their own.
add_library(metaldoctor_options INTERFACE)
target_include_directories(metaldoctor_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(metaldoctor_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wimplicit-fallthrough -Wconversion -Wno-sign-conversion>)
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

# metaldoctor_library(<name> SOURCES <file>... [DEPENDS <room library>...])
function(metaldoctor_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC metaldoctor_options ${ARG_DEPENDS})
endfunction()
