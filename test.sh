#!/usr/bin/env bash
# test.sh - from a fresh checkout to passed tests: tools, model, builds, all tests.
#
#   ./test.sh            release build, sanitizer build, both with all tests; gcc and clang without a warning
#   ./test.sh --quick    the release build and its tests alone
#
# What is already there is not done again. Tests that need what this machine lacks say so and are skipped; ctest lists
# them. The exit code is 0 when nothing failed.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$root"
quick=no
case ${1:-} in
'') ;;
--quick) quick=yes ;;
*) echo "test.sh: unknown argument '$1'; there is --quick" >&2; exit 2 ;;
esac

say() { echo "== $*"; }
jobs=$(nproc)
failed=""

# Whatever is missing is said at once; the model alone may stay missing.
ready=yes
say "tools"
tools/setup.sh test || ready=no
say "model"
tools/fetch-models.sh smollm2 || echo "test.sh: without the model the tests that need it are skipped"
[ $ready = yes ] || exit 1

run_preset() { # run_preset PRESET
    say "build $1"
    tools/build.sh "$1"
    say "test $1"
    ctest --preset "$1" -j "$jobs" --no-tests=error || failed="$failed $1"
}

run_preset release
if [ $quick = no ]; then
    for compiler in gcc clang; do
        if command -v $compiler >/dev/null; then
            say "warnings of $compiler"
            { cmake -S . -B build/warn-$compiler -G Ninja -DCMAKE_C_COMPILER=$compiler -DCMAKE_BUILD_TYPE=Release \
                -DSLUICE_WERROR=ON -DSLUICE_BUILD_TESTS=OFF && cmake --build build/warn-$compiler; } >build/warn-$compiler.log 2>&1 ||
                { cat build/warn-$compiler.log; failed="$failed warnings-of-$compiler"; }
        else
            echo "test.sh: $compiler is not installed; its warnings are not checked"
        fi
    done
    export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:allocator_may_return_null=1}
    run_preset asan
fi
[ -z "$failed" ] || { say "FAILED:$failed"; exit 1; }
say "all passed"
