#!/usr/bin/env bash
# setup.sh - see to it that the tools are there that a job needs, with Debian's packages; touch nothing when they are.
#
#   tools/setup.sh build          compile the library and the program
#   tools/setup.sh fetch          fetch models
#   tools/setup.sh test           build and run the tests
#
# Every need is asked for by what it can do, not by the package's name, so that tools from elsewhere count. Packages
# marked "wish" widen the tests; without them those tests say that they are skipped.
set -euo pipefail

say() { echo "setup: $*" >&2; }
die() { say "$*"; exit 1; }

can_compile() { echo 'int main(void) { return 0; }' | cc -x c - -o /dev/null; }
has_pip() {
    python3 -m pip --version || /usr/bin/python3 -m pip --version
}

# job, need or wish, packages, how to ask
needs() {
    cat <<'ROWS'
build|need|gcc libc6-dev|can_compile
build|need|cmake|cmake --version
build|need|ninja-build|ninja --version
build|need|pkg-config|pkg-config --version
build|need|libutf8proc-dev|pkg-config --exists libutf8proc
fetch|need|python3|python3 --version
fetch|need|python3-pip|has_pip
test|need|python3|python3 --version
test|need|binutils|nm --version
test|need|libcmocka-dev|pkg-config --exists cmocka
test|wish|clang|clang --version
test|wish|clang-format-14|clang-format-14 --version
ROWS
}

missing() { # missing "JOB ..." KIND: the packages of these jobs that are not there
    local job kind packages question found=""
    while IFS='|' read -r job kind packages question; do
        if [[ " $1 " == *" $job "* ]] && [ "$kind" = "$2" ] && ! eval "$question" >/dev/null 2>&1; then
            found="$found $packages"
        fi
    done < <(needs)
    echo "${found# }"
}

# What stands before apt-get: nothing for root, sudo for others; false (and the reason in $why) where there is no way.
why=""
as_root=()
can_install() {
    as_root=()
    if ! command -v apt-get >/dev/null; then
        why="this system has no apt-get"
        return 1
    fi
    if [ "$(id -u)" != 0 ]; then
        if ! command -v sudo >/dev/null; then
            why="this user is not root and has no sudo"
            return 1
        fi
        as_root=(sudo)
    fi
}

install_packages() { # install_packages PACKAGE...
    local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=500 -q)
    say "installing $*"
    "${as_root[@]}" "${apt[@]}" update >&2 || say "the package lists could not be refreshed (no network?); trying what is there"
    if ! "${as_root[@]}" "${apt[@]}" install -y --no-install-recommends "$@" >&2; then
        why="apt-get could not install them (no network?)"
        return 1
    fi
}

ensure() { # ensure "JOB ...": all that they need, in one go
    local need wish left
    need=$(missing "$1" need)
    wish=$(missing "$1" wish)
    [ -n "$need$wish" ] || return 0
    if can_install; then
        # shellcheck disable=SC2086
        if ! install_packages $need $wish && [ -n "$need" ] && [ -n "$wish" ]; then
            install_packages $need || true
        fi
    fi
    left=$(missing "$1" need)
    [ -z "$left" ] || die "missing: $left ($why). Get them as root, with a network: apt-get install $left"
    left=$(missing "$1" wish)
    [ -z "$left" ] || say "without $left some tests are skipped${why:+ ($why)}"
}

[ $# -gt 0 ] || die "which job? build, fetch or test"
for job in "$@"; do
    case $job in
    build | fetch) ensure "$job" ;;
    test) ensure "build test" ;;
    *) die "unknown job '$job': build, fetch or test" ;;
    esac
done
