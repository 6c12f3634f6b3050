#!/usr/bin/env python3
"""check_symbols.py BUILD_FOLDER - what the built library shows and keeps.

The shared library exports exactly the functions that include/sluice.h declares with SL_API, and no object of the static
one has writable data: the library has no mutable globals, so two engines never meet."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def declared(header):
    text = re.sub(r"/\*.*?\*/", " ", header, flags=re.S)
    text = re.sub(r"^\s*#.*$", "", text, flags=re.M)
    return set(re.findall(r"\bSL_API\b[^;{]*?\b(sl_\w+)\s*\(", text))


def exported(library):
    out = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    return {line.split()[2] for line in out.splitlines() if len(line.split()) == 3} - {"_init", "_fini"}


def writable(archive):
    """Objects in .data, .bss and thread-local storage, and common ones. Constant tables of pointers are in
    .data.rel.ro, which the loader makes read-only."""
    out = subprocess.run(["objdump", "-t", archive], capture_output=True, text=True, check=True).stdout
    found = []
    for line in out.splitlines():
        match = re.match(r"^[0-9a-f]+ .{7} (\S+)\s+([0-9a-f]+)\s+(?:\.hidden )?(\S+)$", line)
        if match and re.fullmatch(r"\.t?data(\.(?!rel\.ro).*)?|\.t?bss(\..*)?|\*COM\*", match.group(1)):
            if int(match.group(2), 16) != 0:
                found.append(match.group(3))
    return found


def compare(header, names):
    want = declared(header)
    return (["exported, but not in sluice.h: %s" % n for n in sorted(names - want)]
            + ["in sluice.h, but not exported: %s" % n for n in sorted(want - names)])


def check(folder):
    with open(os.path.join(ROOT, "include", "sluice.h"), encoding="utf-8") as f:
        header = f.read()
    problems = compare(header, exported(os.path.join(folder, "libsluice.so")))
    return problems + ["mutable global: %s" % n for n in writable(os.path.join(folder, "libsluice.a"))]


def self_test():
    header = "#define SL_API x\n/* SL_API int sl_no(void); */\nSL_API int sl_a(void);\nSL_API const char *sl_b(int a,\n int b);\n"
    source = "int sl_a(void);\nint sl_a(void) { return 1; }\nint sl_c(void);\nint sl_c(void) { return 2; }\n" \
             "static int counter;\nint sl_d(void);\nint sl_d(void) { return counter++; }\nconst char *const table[] = {\"x\"};\n"
    with tempfile.TemporaryDirectory() as folder:
        c, o, so = (os.path.join(folder, n) for n in ("a.c", "a.o", "liba.so"))
        with open(c, "w", encoding="utf-8") as f:
            f.write(source)
        subprocess.run(["cc", "-fPIC", "-c", c, "-o", o], check=True)
        subprocess.run(["cc", "-shared", o, "-o", so], check=True)
        problems = compare(header, exported(so))
        globals_ = writable(o)
    want = ["exported, but not in sluice.h: sl_c", "exported, but not in sluice.h: sl_d",
            "exported, but not in sluice.h: table", "in sluice.h, but not exported: sl_b"]
    ok = problems == want and globals_ == ["counter"]
    print("self-test: %s" % ("ok" if ok else "wrong: %r %r" % (problems, globals_)))
    return 0 if ok else 1


if __name__ == "__main__":
    for tool in ("nm", "objdump", "cc"):
        if not shutil.which(tool):
            print("SKIP: %s is not installed" % tool)
            sys.exit(77)
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(self_test())
    found = check(sys.argv[1])
    print("\n".join(found) if found else "check_symbols.py: ok")
    sys.exit(1 if found else 0)
