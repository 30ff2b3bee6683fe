# cmake -DOUTPUT=x.c -DCRDS=a.yaml,b.yaml -P embed.cmake
#
# The CRDs as bytes in the program (api/crd/text.h), so that manifests are held against the very
# files that a cluster is given.
string(REPLACE "," ";" crds "${CRDS}")
set(arrays "")
set(table "")
set(number 0)
foreach(file IN LISTS crds)
    file(READ "${file}" bytes HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    string(APPEND arrays "static const char crd_${number}[] = {\n${bytes}\n};\n")
    string(APPEND table "    {crd_${number}, sizeof(crd_${number})},\n")
    math(EXPR number "${number} + 1")
endforeach()
file(WRITE "${OUTPUT}" "/* Made by cmake/embed.cmake from crds/. */
#include \"api/crd/text.h\"

${arrays}
const struct str crd_texts[] = {
${table}};
const uint32_t crd_text_count = ${number};
")
