# Compiler and linker flags, on one interface target that every target of the project links.
include(CheckCCompilerFlag)
include(CheckPIESupported)

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
check_pie_supported(LANGUAGES C)

if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Debug CACHE STRING "Debug or Release" FORCE)
endif()
# Assertions stay on in a release, so no -DNDEBUG anywhere.
set(CMAKE_C_FLAGS_RELEASE "-O2 -g1")
set(CMAKE_C_FLAGS_DEBUG "-O1 -g")

find_program(TALLYMAN_CCACHE ccache)
if(TALLYMAN_CCACHE AND NOT CMAKE_C_COMPILER_LAUNCHER)
    set(CMAKE_C_COMPILER_LAUNCHER "${TALLYMAN_CCACHE}")
endif()

add_library(tallyman_flags INTERFACE)
target_include_directories(tallyman_flags INTERFACE "${PROJECT_SOURCE_DIR}/include")
target_compile_definitions(tallyman_flags INTERFACE TALLYMAN_VERSION="${PROJECT_VERSION}")
target_compile_options(tallyman_flags INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wswitch-enum
    -Wmissing-prototypes -Wstrict-prototypes -Wvla -Wformat=2 -Wundef -Wcast-align
    -Wnull-dereference)
if(TALLYMAN_WERROR)
    target_compile_options(tallyman_flags INTERFACE -Werror)
endif()

if(TALLYMAN_SANITIZE)
    set(sanitize -fsanitize=${TALLYMAN_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_compile_options(tallyman_flags INTERFACE ${sanitize})
    target_link_options(tallyman_flags INTERFACE ${sanitize})
endif()

if(TALLYMAN_FUZZ)
    # Every object reports its edges; only a fuzz target links libFuzzer's main().
    target_compile_options(tallyman_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

if(TALLYMAN_COVERAGE)
    target_compile_definitions(tallyman_flags INTERFACE TALLYMAN_COVERAGE)
    target_link_options(tallyman_flags INTERFACE --coverage)
endif()

if(TALLYMAN_HARDEN)
    # Two builds of one source are the same bytes, wherever they were made.
    target_compile_options(tallyman_flags INTERFACE
        -ffile-prefix-map=${PROJECT_SOURCE_DIR}=. -ffile-prefix-map=${CMAKE_BINARY_DIR}=build)
    target_compile_options(tallyman_flags INTERFACE
        -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -fstack-protector-strong -fstack-clash-protection)
    target_link_options(tallyman_flags INTERFACE -Wl,-z,relro,-z,now,-z,noexecstack)
    foreach(flag -fcf-protection=full -mbranch-protection=standard) # x86-64, arm64
        string(MAKE_C_IDENTIFIER "TALLYMAN_HAS${flag}" known)
        check_c_compiler_flag(${flag} ${known})
        if(${known})
            target_compile_options(tallyman_flags INTERFACE ${flag})
        endif()
    endforeach()
endif()
