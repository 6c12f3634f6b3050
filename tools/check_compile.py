#!/usr/bin/env python3
"""check_compile.py - every header stands alone, sluice.h also as C++, and no array has a run-time length.

Headers are compiled by themselves with our warnings as errors, by every compiler that is there (gcc, clang)."""
import os
import shutil
import subprocess
import tempfile

from check_common import Skip, run, sources

FLAGS = ["-std=c11", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Wstrict-prototypes",
         "-Werror", "-Iinclude", "-Isrc", "-Icli", "-Itests"]
CXX_FLAGS = ["-std=c++11", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Iinclude"]


def _try(root, command, what, problems):
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    if done.returncode != 0:
        first = next((l for l in done.stderr.split("\n") if "error" in l), done.stderr.strip())
        problems.append("%s: %s" % (what, first))


def check(root):
    compilers = [c for c in ("gcc", "clang") if shutil.which(c)]
    if not compilers:
        raise Skip("neither gcc nor clang is installed")
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        one = os.path.join(folder, "alone.c")
        for path in sources(root, ("include", "src", "cli", "tests"), (".h",)):
            if path.endswith("_body.h"):
                continue  # the body of functions, included several times under different macros
            # A header twice: its guard is tried as well.
            with open(one, "w", encoding="utf-8") as f:
                f.write('#include "%s"\n#include "%s"\ntypedef int not_empty;\n' % ((os.path.join(os.path.abspath(root), path),) * 2))
            for compiler in compilers:
                _try(root, [compiler] + FLAGS + [one], "%s alone (%s)" % (path, compiler), problems)
            cxx = shutil.which("g++") or shutil.which("clang++")
            if path == os.path.join("include", "sluice.h") and cxx:
                _try(root, [cxx] + CXX_FLAGS + ["-x", "c++", one], "%s as C++" % path, problems)
        for path in sources(root, ("src", "cli"), (".c",)):
            _try(root, [compilers[0], "-std=c11", "-fsyntax-only", "-Werror=vla", "-Iinclude", "-Isrc", "-Icli", path],
                 path, problems)
    return problems


if __name__ == "__main__":
    run(check,
        bad=[
            ({"src/base/a.h": "size_t f(void);\n"}, "src/base/a.h alone"),
            ({"src/base/a.h": "struct a { int x; };\n"}, "src/base/a.h alone"),
            ({"include/sluice.h": "#ifndef A\n#define A\nvoid f(int class);\n#endif\n"}, "include/sluice.h as C++"),
            ({"src/base/a.c": "int f(int n);\nint f(int n) { int a[n]; a[0] = n; return a[0]; }\n"}, "src/base/a.c: "),
        ],
        good=[{"include/sluice.h": "#ifndef A\n#define A\n#include <stddef.h>\nsize_t f(void);\n#endif\n",
               "src/base/a.c": "#include \"sluice.h\"\nsize_t f(void) { int a[3] = {0}; return (size_t)a[0]; }\n"}])
