#!/usr/bin/env python3
"""check_layers.py - a module of src/ includes only the modules that docs/DESIGN.md section 3 allows it.

The table below is that section. Programs and bindings see include/sluice.h and their own files."""
import os
import re

from check_common import code_only, lines, read, run, sources

# module: what it may include besides itself and sluice.h
MODULES = {
    "base": "",
    "store": "base",
    "quant": "base",
    "format": "base store quant",
    "kern": "base quant",
    "graph": "base quant kern",
    "backend": "base quant kern graph",
    "weights": "base store quant format graph backend",
    "kv": "base quant graph backend",
    "token": "base format",
    "sample": "base token",
    "model": "base quant format graph weights kv token",
    "adapt": "base store",
    "convert": "base store quant format model",
    "engine": "base store quant format kern graph backend weights kv token sample model adapt convert",
}
# folder outside src/: the modules that it may see
OUTSIDE = {"cli": "", "server": "", "bindings": "", "bench": "base quant kern"}

_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')


def _may(path):
    """(name for messages, allowed modules) of the file at path, or None when any include is fine."""
    parts = path.split(os.sep)
    if parts[0] == "src":
        if len(parts) < 3:
            return ("src", set())
        return (parts[1], set(MODULES.get(parts[1], "").split()) | {parts[1]})
    if parts[0] in OUTSIDE:
        return (parts[0], set(OUTSIDE[parts[0]].split()))
    return None


def check(root):
    problems = []
    for folder in sorted(os.listdir(os.path.join(root, "src")) if os.path.isdir(os.path.join(root, "src")) else []):
        if folder not in MODULES:
            problems.append("src/%s: no module of docs/DESIGN.md section 3" % folder)
    for path in sources(root, ("src",) + tuple(OUTSIDE)):
        name, allowed = _may(path)
        for number, line in lines(code_only(read(root, path), keep_strings=True)):
            match = _INCLUDE.match(line)
            if not match:
                continue
            target = match.group(1)
            where = "%s:%d" % (path, number)
            if target == "sluice.h":
                continue
            if ".." in target.split("/"):
                problems.append('%s: include "%s" by its path below src/, without ..' % (where, target))
                continue
            module = target.split("/")[0]
            if "/" not in target or module not in MODULES:
                if path.startswith("src" + os.sep):
                    problems.append('%s: include "%s" as "<module>/<file>"' % (where, target))
                elif not os.path.exists(os.path.join(root, os.path.dirname(path), target)):
                    problems.append('%s: "%s" is no file of %s/' % (where, target, name))
            elif module not in allowed:
                problems.append('%s: %s may not include "%s" (it may: %s)'
                                % (where, name, target, " ".join(sorted(allowed)) or "sluice.h alone"))
    return problems


if __name__ == "__main__":
    run(check,
        bad=[
            ({"src/base/a.c": '#include "engine/engine.h"\n'}, "base may not include"),
            ({"src/kern/a.c": '#include "graph/graph.h"\n'}, "kern may not include"),
            ({"src/token/a.h": '#include "../base/ledger.h"\n'}, "without .."),
            ({"src/token/a.c": '#include "ledger.h"\n'}, "<module>/<file>"),
            ({"src/extra/a.c": ""}, "no module of"),
            ({"cli/a.c": '#include "base/ledger.h"\n'}, "cli may not include"),
            ({"bench/a.c": '#include "engine/engine.h"\n'}, "bench may not include"),
        ],
        good=[{"src/model/a.c": '#include "base/ledger.h"\n#include "sluice.h"\n/* #include "engine/x.h" */\n',
               "cli/a.c": '#include "sluice.h"\n#include "b.h"\n#include <stdio.h>\n', "cli/b.h": "",
               "tests/a.c": '#include "engine/engine.h"\n'}])
