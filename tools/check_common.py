"""check_common.py - what the checkers of tools/ share.

A checker is a function  check(root) -> list of problems  and samples that prove that it can fail:

    run(check, bad=[(files, "words that its report must have"), ...], good=[files, ...])

where files is {path: text}. On the command line:

    check_x.py [ROOT]        print the problems; exit code 0: none, 1: some, 77: cannot be checked here (with the reason)
    check_x.py --self-test   every bad sample is reported with its words, every good one passes
"""
import os
import re
import sys
import tempfile

SOURCE_FOLDERS = ("include", "src", "cli", "server", "bench", "tests", "bindings")


class Skip(Exception):
    """This machine lacks what the check needs."""


def sources(root, folders=SOURCE_FOLDERS, ends=(".c", ".h", ".def")):
    """Paths, relative to root, of the source files below the folders, sorted."""
    found = []
    for folder in folders:
        for at, below, names in os.walk(os.path.join(root, folder)):
            below[:] = [b for b in below if b not in ("build", "data", ".git") and not b.startswith("build-")]
            found += [os.path.relpath(os.path.join(at, n), root) for n in names if n.endswith(ends)]
    return sorted(found)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as f:
        return f.read()


def is_generated(text):
    """Generated tables say so in their first lines."""
    return re.search(r"[Gg]enerated by tools/", text[:600]) is not None


_TOKEN = re.compile(r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.S)


def code_only(text, keep_strings=False):
    """The text with comments (and the insides of strings) blanked, line numbers kept."""
    def blank(match):
        piece = match.group(0)
        if piece[0] in "\"'":
            return piece if keep_strings else piece[0] + piece[0]
        return "\n" * piece.count("\n") + " "
    return _TOKEN.sub(blank, text)


def lines(text):
    return enumerate(text.split("\n"), 1)


def _write(folder, files):
    for path, text in files.items():
        whole = os.path.join(folder, path)
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        with open(whole, "w", encoding="utf-8") as f:
            f.write(text)


def _self_test(check, bad, good):
    failed = 0
    for number, (files, words) in enumerate(bad, 1):
        with tempfile.TemporaryDirectory() as folder:
            _write(folder, files)
            problems = check(folder)
            if not any(words in p for p in problems):
                print("bad sample %d: no report with '%s', but %r" % (number, words, problems))
                failed += 1
    for number, files in enumerate(good, 1):
        with tempfile.TemporaryDirectory() as folder:
            _write(folder, files)
            problems = check(folder)
            if problems:
                print("good sample %d: %r" % (number, problems))
                failed += 1
    print("self-test: %d bad and %d good samples, %d wrong" % (len(bad), len(good), failed))
    return 1 if failed else 0


def run(check, bad, good):
    args = sys.argv[1:]
    try:
        if args == ["--self-test"]:
            sys.exit(_self_test(check, bad, good))
        root = args[0] if args else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        problems = check(root)
    except Skip as skip:
        print("SKIP: %s" % skip)
        sys.exit(77)
    for problem in problems:
        print(problem)
    print("%s: %s" % (os.path.basename(sys.argv[0]), "%d problems" % len(problems) if problems else "ok"))
    sys.exit(1 if problems else 0)
