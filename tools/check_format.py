#!/usr/bin/env python3
"""check_format.py - every C file is as clang-format 14 with our .clang-format writes it.

Other versions differ in details, so a machine with another one skips this."""
import re
import shutil
import subprocess

from check_common import Skip, is_generated, read, run, sources

STYLE = "BasedOnStyle: LLVM\nIndentWidth: 4\n"


def _tool():
    for name in ("clang-format-14", "clang-format"):
        path = shutil.which(name)
        if path:
            version = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
            if re.search(r"version 14\.", version):
                return path
    raise Skip("clang-format 14 is not installed")


def check(root):
    files = [p for p in sources(root, ends=(".c", ".h")) if not is_generated(read(root, p))]
    if not files:
        return []
    done = subprocess.run([_tool(), "--style=file", "--dry-run", "-Werror"] + files, cwd=root,
                          capture_output=True, text=True)
    bad = sorted({m.group(1) for m in re.finditer(r"^([^\s:]+):\d+:\d+: error: code should be", done.stderr, re.M)})
    if done.returncode != 0 and not bad:
        return [done.stderr.strip()]
    return ["%s: not formatted; run clang-format -i on it" % p for p in bad]


if __name__ == "__main__":
    run(check,
        bad=[({".clang-format": STYLE, "src/base/a.c": "int  f( void ){return 1;}\n"}, "src/base/a.c: not formatted")],
        good=[{".clang-format": STYLE, "src/base/a.c": "int f(void) { return 1; }\n"}])
