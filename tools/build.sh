#!/usr/bin/env bash
# build.sh - configure (when that has not been done here) and build.
#
#   tools/build.sh PRESET [TARGET ...]           PRESET: release, debug, asan, tsan (CMakePresets.json)
#
# The build goes to build/PRESET. Without targets everything is built, the tests too. A folder that was configured in
# another place (a moved or copied checkout) is made anew.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
preset=${1:?which preset? release, debug, asan or tsan}
shift
folder=$root/build/$preset
cd "$root"

mkdir -p build
exec 9>build/.lock
flock 9

tests=OFF
[ $# -gt 0 ] || tests=ON
made_for=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$folder/CMakeCache.txt" 2>/dev/null || true)
if [ -n "$made_for" ] && [ "$made_for" != "$root" ]; then
    rm -rf "$folder"
fi
# The program alone needs no test libraries; once the tests have been configured they stay.
if [ ! -f "$folder/build.ninja" ] || { [ $tests = ON ] && ! grep -q '^SLUICE_BUILD_TESTS:BOOL=ON' "$folder/CMakeCache.txt"; }; then
    cmake --preset "$preset" -DSLUICE_BUILD_TESTS=$tests >"build/$preset.log" 2>&1 || { cat "build/$preset.log" >&2; exit 1; }
fi
args=(--build "$folder")
for target in "$@"; do
    args+=(--target "$target")
done
# Quiet when there is nothing to do; otherwise a line, because it takes a while. (A dry run cannot tell: it takes the look
# at the folders, which is part of every build, for work.)
announce() {
    local line said=no
    while IFS= read -r line; do
        if [ $said = no ] && [[ $line == *"] Building "* || $line == *"] Linking "* ]]; then
            said=yes
            echo "build.sh: building $1" >&2
        fi
    done
}
if ! cmake "${args[@]}" 2>&1 | tee "build/$preset.log" | announce "$preset ${*:-everything}"; then
    grep -v '^\[[0-9]*/[0-9]*\]' "build/$preset.log" >&2 || true
    echo "build.sh: the build failed; the whole log is build/$preset.log" >&2
    exit 1
fi
grep -E 'warning:' "build/$preset.log" >&2 || true
