#!/usr/bin/env python3
"""check_bans.py - what the library may not do (docs/STYLE.md, "Kept by a script").

It allocates through the ledger only, meets the system in base/os_*.c only, prints nothing, reads no environment, never
ends the process, and uses no function that writes without a bound."""
import re

from check_common import code_only, lines, read, run, sources

# Banned calls: names -> (where they are allowed, why not elsewhere)
BANS = [
    ("malloc calloc realloc free aligned_alloc posix_memalign memalign valloc strdup strndup reallocarray",
     r"src/base/ledger\.c$", "memory comes from the ledger (base/ledger.h)"),
    ("mmap munmap mremap madvise mlock open openat pread read write fopen fread fwrite fclose pthread_create sysconf",
     r"src/base/os_\w+\.c$", "the system is met in base/os_*.c only"),
    ("printf fprintf vprintf vfprintf dprintf puts fputs putchar putc fputc perror psignal",
     None, "the library prints nothing"),
    ("getenv secure_getenv setenv putenv unsetenv", None, "the library reads no environment"),
    ("exit _exit _Exit quick_exit abort atexit raise kill longjmp setjmp", None, "the library never ends the process"),
    ("strcpy strcat stpcpy strncat sprintf vsprintf gets", None, "it writes without a bound"),
    ("atoi atol atoll atof strtok rand srand setlocale", None, "it hides errors or shared state"),
    ("alloca __builtin_alloca", None, "the stack has no account"),
    ("system popen execve execv execvp fork dlopen", None, "the library starts nothing"),
]
CALLS = {name: (allowed, why) for names, allowed, why in BANS for name in names.split()}

# Headers of the C library that do not reach the system, and headers for some files only.
STANDARD = set("""assert.h ctype.h errno.h float.h inttypes.h limits.h math.h stdalign.h stdarg.h stdatomic.h stdbool.h
stddef.h stdint.h stdio.h stdlib.h stdnoreturn.h string.h""".split())
SPECIAL = [
    (r"immintrin\.h|cpuid\.h|arm_neon\.h|arm_acle\.h|wasm_simd128\.h|x86intrin\.h", r"src/kern/", "SIMD belongs to src/kern"),
    (r"utf8proc\.h", r"src/(base|token)/", "Unicode normalisation belongs to src/base and src/token"),
    (r"zstd\.h", r"src/store/", "compression belongs to src/store"),
]

_CALL = re.compile(r"(?<![\w.>])([A-Za-z_]\w*)\s*\(")
_SYSTEM = re.compile(r"^\s*#\s*include\s*<([^>]+)>")
_POINTER = re.compile(r"->\s*([A-Za-z_]\w*)\s*\(")
_FAST = re.compile(r"fast-math|Ofast|associative-math|FP_CONTRACT\s+ON|fp-contract=(?:fast|on)")


def _check_file(path, text, problems):
    code = code_only(text)
    for number, line in lines(code):
        where = "%s:%d" % (path, number)
        match = _SYSTEM.match(line)
        if match:
            _check_header(path, where, match.group(1), problems)
        # A member function (file->read(...)) is no call of the C library.
        for name in _CALL.findall(_POINTER.sub(" ", line)):
            if name in CALLS:
                allowed, why = CALLS[name]
                if allowed is None or not re.search(allowed, path):
                    # A declaration of a member or a parameter such as (*read)(...) never matches _CALL.
                    problems.append("%s: %s(): %s" % (where, name, why))


def _check_header(path, where, header, problems):
    for pattern, allowed, why in SPECIAL:
        if re.fullmatch(pattern, header):
            if not re.match(allowed, path):
                problems.append("%s: <%s>: %s" % (where, header, why))
            return
    if header not in STANDARD and not re.search(r"src/base/os_\w+\.c$", path):
        problems.append("%s: <%s>: system headers belong to base/os_*.c" % (where, header))


def check(root):
    problems = []
    for path in sources(root, ("src",)):
        _check_file(path, read(root, path), problems)
    for path in sources(root, ("src", "cli", "tests", "bench"), (".c", ".h", ".txt", ".cmake")) + ["CMakeLists.txt", "CMakePresets.json"]:
        try:
            text = read(root, path)
        except FileNotFoundError:
            continue
        # Prose may name the flag that we do not use; the build files and the code may not.
        text = re.sub(r"#[^\n]*", "", text) if path.endswith((".txt", ".cmake")) else code_only(text, keep_strings=True)
        for number, line in lines(text):
            if _FAST.search(line):
                problems.append("%s:%d: fast math changes the bits, which are a promise" % (path, number))
    return problems


if __name__ == "__main__":
    run(check,
        bad=[
            ({"src/token/a.c": "void f(void) { void *p = malloc(3); }\n"}, "malloc(): memory comes"),
            ({"src/token/a.c": "void f(void) { free (p); }\n"}, "free(): memory comes"),
            ({"src/model/a.c": "#include <unistd.h>\n"}, "<unistd.h>: system headers"),
            ({"src/model/a.c": "#include <immintrin.h>\n"}, "SIMD belongs"),
            ({"src/model/a.c": '  printf("x");\n'}, "prints nothing"),
            ({"src/model/a.c": '  fprintf(stderr, "x");\n'}, "prints nothing"),
            ({"src/model/a.c": '  x = getenv("X");\n'}, "no environment"),
            ({"src/base/os_posix.c": "  abort();\n"}, "never ends"),
            ({"src/model/a.c": "  exit(1);\n"}, "never ends"),
            ({"src/model/a.c": "  strcpy(a, b);\n"}, "without a bound"),
            ({"src/model/a.c": "  n = atoi(a);\n"}, "hides errors"),
            ({"src/model/a.c": "  p = alloca(9);\n"}, "no account"),
            ({"src/base/ledger.c": "  system(c);\n"}, "starts nothing"),
            ({"CMakeLists.txt": "add_compile_options(-ffast-math)\n"}, "fast math"),
            ({"src/kern/a.c": '#pragma GCC optimize("fast-math")\n'}, "fast math"),
        ],
        good=[{"src/base/ledger.c": "#include <stdlib.h>\n void *f(void) { return malloc(3); }\n",
               "src/base/os_posix.c": "#include <unistd.h>\n int f(void) { return (int)read(0, 0, 0); }\n",
               "src/model/a.c": '/* printf("x") */ void g(void) { s->read(1); t.open(2); snprintf(a, 1, "malloc(3)"); }\n'
                                "// exit(1)\nint sl_alloc_free(int);\n",
               "CMakeLists.txt": "# no -ffast-math\nadd_compile_options(-ffp-contract=off)\n"}])
