"""Files of 500 lines, functions of 70, complexity of 12 at most; `allow` lists what may be more, with
its reason, and an entry that is no longer needed has to go."""
import os
import re
import subprocess

import tree

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 70
COMPLEXITY_MAX = 12
ALLOWED_MAX = 12
REASON_MIN_WORDS = 4
# A function that is little more than one switch: few ways through it if the switch counts as one
# (pmccabe's modified figure), many if each case counts.
DISPATCH_MODIFIED_MAX = 3
DISPATCH_CASES_MIN = 10
# A test that is mostly a table: few ways through it, and few statements for its lines.
TABLE_MODIFIED_MAX = 4
TABLE_LINES_PER_STATEMENT = 5

ALLOW_FILE = os.path.join("tests", "checks", "allow")
PMCCABE_LINE = re.compile(r"^(\d+)\t(\d+)\t(\d+)\t(\d+)\t(\d+)\t(.+)\((\d+)\): (.+)$")


def read_allowed(top):
    """{(rule, path, function): limit}, and what is wrong with the file itself."""
    allowed = {}
    problems = []
    if not os.path.exists(os.path.join(top, ALLOW_FILE)):
        return allowed, problems
    for number, line in enumerate(tree.read(top, ALLOW_FILE).splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        entry = re.match(r"^(file|lines|complexity) (\S+) (\S+) (\d+) (.+)$", line)
        if not entry:
            problems.append(f"{ALLOW_FILE}:{number}: should be \"file|lines|complexity PATH "
                            "FUNCTION LIMIT REASON\" (FUNCTION is - for a file)")
        elif len(entry[5].split()) < REASON_MIN_WORDS:
            problems.append(f"{ALLOW_FILE}:{number}: the reason says too little")
        else:
            allowed[(entry[1], entry[2], entry[3])] = int(entry[4])
    if len(allowed) > ALLOWED_MAX:
        problems.append(f"{ALLOW_FILE}: {len(allowed)} entries; at most {ALLOWED_MAX} may be, so "
                        "something has to be made smaller")
    return allowed, problems


def measure_files(top):
    for path in tree.files(top):
        if path.endswith((".c", ".h")) or tree.is_python(top, path) or tree.is_shell(top, path):
            yield ("file", path, "-"), tree.read(top, path).count("\n"), FILE_LINES_MAX


def is_exempt(path, modified, traditional, statements, lines):
    """Whether a function may be long: it only dispatches, or it is a test's table."""
    if modified <= DISPATCH_MODIFIED_MAX and traditional - modified >= DISPATCH_CASES_MIN:
        return True
    return (path.startswith("tests/") and modified <= TABLE_MODIFIED_MAX and
            lines >= TABLE_LINES_PER_STATEMENT * statements)


def measure_functions(top):
    sources = [path for path in tree.c_files(top) if path.endswith(".c")]
    if not sources:
        return
    output = subprocess.run(["pmccabe", *sources], cwd=top, check=False, capture_output=True,
                            text=True).stdout
    for line in output.splitlines():
        found = PMCCABE_LINE.match(line)
        if not found:
            continue
        modified, traditional, statements = int(found[1]), int(found[2]), int(found[3])
        lines = int(found[5])
        path, function = found[6], found[8]
        yield ("complexity", path, function), modified, COMPLEXITY_MAX
        if not is_exempt(path, modified, traditional, statements, lines):
            yield ("lines", path, function), lines, FUNCTION_LINES_MAX


WORDS = {
    "file": "{path}: {value} lines; a file may have {limit}",
    "lines": "{path}: {function}() has {value} lines; a function may have {limit}",
    "complexity": "{path}: {function}() has complexity {value}; a function may have {limit}",
}


def check(top, _context):
    allowed, problems = read_allowed(top)
    unused = set(allowed)
    for measure in (measure_files, measure_functions):
        for key, value, limit in measure(top):
            if value <= limit:
                continue
            unused.discard(key)
            if value > allowed.get(key, limit):
                problems.append(WORDS[key[0]].format(path=key[1], function=key[2], value=value,
                                                     limit=allowed.get(key, limit)))
    problems += [f"{ALLOW_FILE}: the entry \"{' '.join(key)}\" isn't needed any more"
                 for key in sorted(unused)]
    return problems
