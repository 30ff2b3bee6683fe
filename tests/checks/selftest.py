"""Plants one violation of each kind in a copy of a part of the tree and wants the check to find it there.

What a check says about the tree as it is counts for nothing here: only what is new in the copy."""
import os
import shutil
import subprocess
import tempfile

import form
import layers
import purity
import size
import tree
import words

# (check, file that is written, its text, what the new problem says)
PLANTED = [
    (layers, "controller/core/planted.c", '#include "tallyman/driver/ports.h"\n',
     "layer core includes \"tallyman/driver/ports.h\""),
    (layers, "controller/kube/planted.c", '#include "tallyman/store/store.h"\n',
     "layer kube includes \"tallyman/store/store.h\""),
    (layers, "include/tallyman/base/planted.h", '#include "tallyman/api/job.h"\n',
     "layer base includes \"tallyman/api/job.h\""),
    (layers, "controller/core/planted.c", '#include "../driver/planted.h"\n',
     "neither a contract header nor next to"),
    (layers, "api/planted.c", "#include <uv.h>\n", "layer api includes <uv.h>"),
    (layers, "controller/core/planted.c", "#include <uthash.h>\n", "through tallyman/base/map.h"),
    (layers, "controller/daemon/planted.c", "#include <yajl/yajl_parse.h>\n",
     "layer daemon includes <yajl/yajl_parse.h>"),
    (layers, "controller/extra/planted.c", "int planted;\n", "there is no layer extra"),
    (size, "api/planted.c", "int planted;\n" * 501, "501 lines; a file may have 500"),
    (size, "api/planted.c", "int f(void)\n{\n" + "    g();\n" * 69 + "}\n",
     "f() has 72 lines; a function may have 70"),
    (size, "tests/planted.c", "int f(void)\n{\n" + "    g();\n" * 69 + "}\n",
     "f() has 72 lines; a function may have 70"),
    (size, "api/planted.c", "int f(int a)\n{\n" + "    if (a) {\n        g();\n    }\n" * 12 + "}\n",
     "f() has complexity 13; a function may have 12"),
    (size, "tests/checks/allow", "file api/none.c - 900 it was once much too long\n",
     "isn't needed any more"),
    (size, "tests/checks/allow", "file api/none.c - 900 because\n", "the reason says too little"),
    (form, "api/planted.c", "int  planted;\n", "clang-format would change this"),
    (form, "api/planted.c", "void f(int a)\n{\n    if (a)\n        f(0);\n}\n", "needs braces"),
    (form, "api/planted.c", "void f(int a)\n{\n    if (a) {\n    } else\n        f(0);\n}\n",
     "needs braces"),
    (words, "docs/planted.md", "T" + "ODO: write this\n", "unfinished business"),
    (words, "docs/planted.md", "see /wo" + "rk/notes\n", "a path of one machine"),
    (words, "docs/planted.md", "pull ghcr" + ".io/x/y\n", "the name of a registry"),
    (words, "docs/planted.md", "at https://" + "goproxy.example.com/x\n", "the name of a registry"),
    (words, "tests/planted.sh", "#!/bin/bash\nif true; then\n", "not bash"),
    (words, "tests/planted.py", "def f(:\n", "not Python"),
]

# Code for the core, and what has to be said about it.
IMPURE = [
    ("#include <time.h>\nlong f(void);\nlong f(void) { return time(0); }\n", "uses time"),
    ("char *getenv(const char *);\nchar *f(void);\nchar *f(void) { return getenv(\"A\"); }\n",
     "uses getenv"),
    ("#include <stdlib.h>\nvoid *f(void);\nvoid *f(void) { return malloc(9); }\n", "uses malloc"),
    ("void log_line(void);\nvoid f(void);\nvoid f(void) { log_line(); }\n", "uses log_line"),
    ("void reach(void);\nvoid f(void);\nvoid f(void) { reach(); }\n",
     "uses fopen and is reached from core/"),
]
BELOW = "#include <stdio.h>\nvoid reach(void);\nvoid reach(void) { fopen(\"a\", \"r\"); }\n"
PURE = "#include <string.h>\nvoid f(char *);\nvoid f(char *a) { memset(a, 0, strlen(a)); }\n"


class PurityContext:
    def __init__(self, build_dir):
        self.build_dir = build_dir

    @staticmethod
    def note(_text):
        return


# A part is enough, and keeps this fast.
COPIED = (".clang-format", "controller/base/", "include/tallyman/base/", "tests/checks/")


def copy_tree(top, target):
    for path in tree.files(top):
        if not path.startswith(COPIED):
            continue
        copy = os.path.join(target, path)
        os.makedirs(os.path.dirname(copy), exist_ok=True)
        shutil.copyfile(os.path.join(top, path), copy)


def plant(copy, path, text):
    """Writes the file; gives what puts things back."""
    target = os.path.join(copy, path)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    before = None
    if os.path.exists(target):
        with open(target, "rb") as file:
            before = file.read()
    with open(target, "w", encoding="utf-8") as file:
        file.write(text)

    def restore():
        if before is None:
            os.remove(target)
            return
        with open(target, "wb") as file:
            file.write(before)
    return restore


def check_planted(copy, context):
    problems = []
    before = {module: set(module.check(copy, context)) for module, *_ in PLANTED}
    for module, path, text, expected in PLANTED:
        restore = plant(copy, path, text)
        new = set(module.check(copy, context)) - before[module]
        restore()
        if not any(expected in problem for problem in new):
            problems.append(f"{module.__name__} didn't find what was planted in {path} "
                            f"({expected}); new were: {sorted(new)}")
    return problems


def make_archive(directory, layer, text):
    source = os.path.join(directory, "planted.c")
    with open(source, "w", encoding="utf-8") as file:
        file.write(text)
    subprocess.run(["cc", "-O1", "-w", "-c", source, "-o", source + ".o"], check=True)
    archive = os.path.join(directory, f"libtallyman_{layer}.a")
    if os.path.exists(archive):
        os.remove(archive)
    subprocess.run(["ar", "rc", archive, source + ".o"], check=True)


def check_impure(directory):
    problems = []
    context = PurityContext(directory)
    make_archive(directory, "api", BELOW)
    make_archive(directory, "base", "void log_line(void);\nvoid log_line(void) { }\n")
    for text, expected in IMPURE:
        make_archive(directory, "core", text)
        found = purity.check(None, context)
        if not any(expected in problem for problem in found):
            problems.append(f"purity didn't say \"{expected}\"; it said: {found}")
    make_archive(directory, "core", PURE)
    found = purity.check(None, context)
    if found:
        problems.append(f"purity found fault with pure code: {found}")
    return problems


def check(top, _context):
    with tempfile.TemporaryDirectory() as directory:
        copy = os.path.join(directory, "tree")
        copy_tree(top, copy)
        problems = check_planted(copy, PurityContext(directory))
        archives = os.path.join(directory, "archives")
        os.mkdir(archives)
        return problems + check_impure(archives)
