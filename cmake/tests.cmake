# Every .c file of these directories is one test executable, noticed by the next build:
#   tests/unit/LAYER/  label unit        tests/property/  label property
#   tests/scenario/    label scenario    tests/fuzz/      label fuzz
# tests/support/ is a library that all of them link. A test runs in the top directory of the sources.
set(tests_dir "${PROJECT_SOURCE_DIR}/tests")
set(test_environment
    "ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1:detect_leaks=1"
    "UBSAN_OPTIONS=print_stacktrace=1")

file(GLOB support_sources CONFIGURE_DEPENDS "${tests_dir}/support/*.c" "${tests_dir}/support/*/*.c")
if(support_sources AND NOT TALLYMAN_FUZZ)
    add_library(tests_support STATIC ${support_sources})
    target_link_libraries(tests_support PUBLIC tallyman_flags)
    set(support_scope PUBLIC)
else()
    add_library(tests_support INTERFACE)
    target_link_libraries(tests_support INTERFACE tallyman_flags)
    set(support_scope INTERFACE)
endif()
target_include_directories(tests_support ${support_scope} "${tests_dir}")
if(NOT TALLYMAN_FUZZ)
    pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
    target_link_libraries(tests_support ${support_scope} PkgConfig::CMOCKA)
endif()

# "tests/unit/base/test_str.c" is unit_base_str.
function(test_name source ret_name)
    file(RELATIVE_PATH path "${tests_dir}" "${source}")
    string(REGEX REPLACE "\\.c$" "" path "${path}")
    string(REGEX REPLACE "(^|/)test_" "\\1" path "${path}")
    string(MAKE_C_IDENTIFIER "${path}" name)
    set(${ret_name} "${name}" PARENT_SCOPE)
endfunction()

function(tests_register name label)
    add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
    set_tests_properties(${name} PROPERTIES
        LABELS ${label} TIMEOUT 600 ENVIRONMENT "${test_environment}")
endfunction()

# tests_add_cmocka(LABEL LAYER pattern...): the tests link that layer and all to its left, no more,
# so that a layer is tested while the ones to its right don't compile.
function(tests_add_cmocka label layer)
    file(GLOB sources CONFIGURE_DEPENDS ${ARGN})
    foreach(source IN LISTS sources)
        test_name("${source}" name)
        add_executable(${name} "${source}")
        target_link_libraries(${name} PRIVATE tests_support tallyman_${layer})
        # cmocka's assertions don't tell the compiler that they end the test.
        set_source_files_properties("${source}" PROPERTIES COMPILE_OPTIONS -Wno-null-dereference)
        tests_register(${name} ${label} ${name})
    endforeach()
endfunction()

# What a scenario tells holds without any index, too; not in those that count what is looked at.
function(tests_add_plain_scenarios)
    file(GLOB sources CONFIGURE_DEPENDS "${tests_dir}/scenario/*.c")
    list(FILTER sources EXCLUDE REGEX "/(cost|scale|topology|wake_nobody|wake_room)\\.c$")
    foreach(source IN LISTS sources)
        test_name("${source}" name)
        tests_register(${name}_plain scenario ${CMAKE_COMMAND} -E env SCENARIOS_ARE_PLAIN=1
            $<TARGET_FILE:${name}>)
    endforeach()
endfunction()

# A fuzz target defines LLVMFuzzerTestOneInput(). Under libFuzzer it searches; everywhere else
# replay_main.c gives it each file of tests/fuzz/corpus/FILE_NAME/, as a regression test.
function(tests_add_fuzz)
    file(GLOB sources CONFIGURE_DEPENDS "${tests_dir}/fuzz/*.c")
    list(REMOVE_ITEM sources "${tests_dir}/fuzz/replay_main.c")
    foreach(source IN LISTS sources)
        test_name("${source}" name)
        get_filename_component(corpus_name "${source}" NAME_WE)
        set(corpus "${tests_dir}/fuzz/corpus/${corpus_name}")
        if(TALLYMAN_FUZZ)
            add_executable(${name} "${source}")
            target_link_options(${name} PRIVATE -fsanitize=fuzzer)
            tests_register(${name} fuzz ${name} -runs=0 "${corpus}")
        else()
            add_executable(${name} "${source}" "${tests_dir}/fuzz/replay_main.c")
            tests_register(${name} fuzz ${name} "${corpus}")
        endif()
        target_link_libraries(${name} PRIVATE tests_support tallyman_daemon)
    endforeach()
endfunction()

if(NOT TALLYMAN_FUZZ)
    foreach(layer base api core driver kube store http sim daemon)
        tests_add_cmocka(unit ${layer} "${tests_dir}/unit/${layer}/*.c")
    endforeach()
    tests_add_cmocka(scenario sim "${tests_dir}/scenario/*.c" "${tests_dir}/scenario/*/*.c")
    tests_add_plain_scenarios()
    tests_add_cmocka(property sim "${tests_dir}/property/*.c")
    # The reference model against the core: some thousand states here, more by `make test-model`.
    file(GLOB model_sources CONFIGURE_DEPENDS "${tests_dir}/model/*.c")
    list(REMOVE_ITEM model_sources "${tests_dir}/model/main.c")
    add_library(tests_model STATIC ${model_sources})
    target_link_libraries(tests_model PUBLIC tests_support tallyman_sim)
    # The whole under faults: some hundred seeds here, any number by make test-vopr.
    file(GLOB vopr_sources CONFIGURE_DEPENDS "${tests_dir}/vopr/*.c")
    add_executable(vopr ${vopr_sources})
    target_link_libraries(vopr PRIVATE tests_support tallyman_sim)
    set_source_files_properties(${vopr_sources} PROPERTIES COMPILE_OPTIONS -Wno-null-dereference)
    tests_register(vopr property vopr)
    # Hand-overs of the leader's place (a thousand by make test-handover), with the real lease on a simulated clock.
    file(GLOB handover_sources CONFIGURE_DEPENDS "${tests_dir}/handover/*.c")
    add_executable(handover ${handover_sources})
    target_link_libraries(handover PRIVATE tests_support tallyman_sim tallyman_kube)
    tests_register(handover property handover 200)
    # The store kept, lost, older, torn or full beside the simulated cluster, and a day of churn.
    file(GLOB keep_sources CONFIGURE_DEPENDS "${tests_dir}/keep/*.c")
    add_executable(keep ${keep_sources})
    target_link_libraries(keep PRIVATE tests_support tallyman_sim tallyman_store)
    tests_register(keep property keep 6)
    # All orders of events at small scope: of two gangs and so many steps here, all by make test-small-scope.
    file(GLOB smallscope_sources CONFIGURE_DEPENDS "${tests_dir}/smallscope/*.c")
    add_executable(smallscope ${smallscope_sources})
    target_link_libraries(smallscope PRIVATE tests_support tallyman_driver)
    tests_register(smallscope property smallscope --gangs 2 --steps 2500)
    add_executable(model "${tests_dir}/model/main.c")
    target_link_libraries(model PRIVATE tests_model)
    tests_register(model property model --states 3000)
    foreach(name property_trees)
        target_link_libraries(${name} PRIVATE tests_model)
    endforeach()
    # What tests/compare-cel asks; here so that what it runs through is counted, too.
    add_executable(cel_answer EXCLUDE_FROM_ALL "${tests_dir}/compare-cel/answer/answer.c")
    target_link_libraries(cel_answer PRIVATE tallyman_flags tallyman_api)
    # Every call of the store fails once: some of them here, all by make test-torture.
    add_executable(torture_store "${tests_dir}/torture/store.c"
        "${tests_dir}/torture/store_story.c" "${tests_dir}/torture/torture.c")
    target_link_libraries(torture_store PRIVATE tallyman_flags tallyman_store)
    set_target_properties(torture_store PROPERTIES ENABLE_EXPORTS ON)
    tests_register(torture_store unit torture_store)
    # The kube layer as a child process, for tests/wire/run.
    file(GLOB wire_sources CONFIGURE_DEPENDS "${tests_dir}/wire/*.c")
    add_executable(wire_client ${wire_sources})
    target_link_libraries(wire_client PRIVATE tallyman_flags tallyman_kube)
    add_executable(torture_client ${wire_sources} "${tests_dir}/torture/wire_begin.c"
        "${tests_dir}/torture/torture.c")
    target_link_libraries(torture_client PRIVATE tallyman_flags tallyman_kube)
    set_target_properties(torture_client PROPERTIES ENABLE_EXPORTS ON)
endif()
tests_add_fuzz()
