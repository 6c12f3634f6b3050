#!/usr/bin/env python3
"""check_docs.py - the files and folders that the documentation names are there, and so are the program's options.

Looked at are the texts that describe what is: README, CONTRIBUTING, docs/ADDING and docs/CLI (docs/DESIGN is a plan as well).
A name in code quotes that begins with a folder of ours has to exist; <name>, * and build/ stand for what is made. Every
long option in code quotes has to be in an option table of cli/, or be an option of one of our scripts."""
import glob
import os
import re

from check_common import lines, read, run

TEXTS = ("README.md", "CONTRIBUTING.md", "docs/ADDING.md", "docs/CLI.md")
FOLDERS = ("src", "cli", "tools", "tests", "docs", "include", "bench", ".ci")
_LINK = re.compile(r"\]\(([^)#]+)\)")


def _options(root):
    known = {"--help", "--version"}
    for path in glob.glob(os.path.join(root, "cli", "*.c")):
        known |= {"--" + n for n in re.findall(r'\.name = "([a-z][a-z-]*)"', read(root, os.path.relpath(path, root)))}
    for pattern in ("*.sh", "tools/*.sh", "tools/*.py"):
        for path in glob.glob(os.path.join(root, pattern)):
            known |= set(re.findall(r"--[a-z][a-z-]*", read(root, os.path.relpath(path, root))))
    return known


def check(root):
    problems = []
    options = _options(root)
    for text in TEXTS:
        if not os.path.exists(os.path.join(root, text)):
            continue
        for number, line in lines(read(root, text)):
            names = _LINK.findall(line)
            for code in re.findall(r"`([^`]+)`", line):
                word = code.split()[0].rstrip(":,")
                if re.match(r"(?:%s)/" % "|".join(map(re.escape, FOLDERS)), word) and not re.search(r"[<*{]", word):
                    names.append(word)
                for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", code):
                    if option not in options and not code.startswith("cmake"):
                        problems.append("%s:%d: there is no option %s" % (text, number, option))
            for name in names:
                if "://" in name:
                    continue
                places = (os.path.join(root, name), os.path.join(root, os.path.dirname(text), name))
                if not any(os.path.exists(p) for p in places):
                    problems.append("%s:%d: %s is not there" % (text, number, name))
    return problems


if __name__ == "__main__":
    run(check,
        bad=[
            ({"README.md": "See `src/none.c`.\n"}, "src/none.c is not there"),
            ({"docs/CLI.md": "See [that](docs/NONE.md).\n"}, "docs/NONE.md is not there"),
            ({"README.md": "Give `--nonsense 3`.\n", "cli/a.c": '{.name = "sense"},\n'}, "no option --nonsense"),
        ],
        good=[{"README.md": "`src/a.c`, `src/<name>.c`, [a](docs/A.md), `sluice --sense 3`, `build/release/sluice`, `tests/*.c`\n",
               "docs/A.md": "", "src/a.c": "", "cli/a.c": '{.name = "sense"},\n'}])
