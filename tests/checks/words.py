"""No unfinished business, no place that only one machine or one network has; scripts can be parsed."""
import ast
import re
import subprocess

import tree

# Written so that none of them matches this file.
FORBIDDEN = [
    (re.compile(r"\b(T[O]DO|FIX[M]E|XX[X])\b"), "unfinished business"),
    (re.compile(r"(?<![\w.}])/(?:w[o]rk|r[o]ot|h[o]me/\w+)/"), "a path of one machine"),
    (re.compile(r"\.\./sh[a]red\b"), "a path of one machine"),
    (re.compile(r"\b(?:registry\.k8s\.io|registry\.npmjs\.org|docker\.io|gcr\.io|ghcr\.io|quay\.io"
                r"|mcr\.microsoft\.com|pypi\.org|files\.pythonhosted\.org|proxy\.golang\.org"
                r"|sum\.golang\.org|deb\.debian\.org|crates\.io)\b"), "the name of a registry"),
    (re.compile(r"https?://[\w.:-]*(?:artifactory|nexus|mirror|goproxy)[\w.:-]*"),
     "the name of a registry"),
]
# Data of other projects, taken as it is.
SKIPPED = re.compile(r"(^|/)(go\.sum|LICENSE)$|^tests/fuzz/corpus/")
LINE_SHOWN_MAX = 80


def check_script(top, path):
    if tree.is_python(top, path):
        try:
            ast.parse(tree.read(top, path), path)
        except SyntaxError as error:
            return f"{path}:{error.lineno}: not Python: {error.msg}"
    elif tree.is_shell(top, path):
        shell = "bash" if "bash" in tree.shebang(top, path) else "sh"
        result = subprocess.run([shell, "-n", path], cwd=top, check=False, capture_output=True,
                                text=True)
        if result.returncode != 0:
            return f"{path}: not {shell}: {result.stderr.strip()}"
    return None


def check(top, _context):
    problems = []
    for path in tree.files(top):
        if SKIPPED.search(path) or not tree.is_text(top, path):
            continue
        problem = check_script(top, path)
        if problem:
            problems.append(problem)
        for number, line in enumerate(tree.read(top, path).splitlines(), 1):
            for pattern, what in FORBIDDEN:
                if pattern.search(line):
                    problems.append(f"{path}:{number}: {what}: {line.strip()[:LINE_SHOWN_MAX]}")
    return problems
