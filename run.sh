#!/usr/bin/env bash
# run.sh - from a fresh checkout to a streamed answer: tools, build, model, question.
#
#   ./run.sh "Why is the sky blue?" [options of 'sluice run']
#
# What is already there is not done again, and then no network is needed. The answer alone goes to standard output.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# Whatever is missing is said at once, not piece by piece.
ready=yes
"$root/tools/setup.sh" build || ready=no
"$root/tools/fetch-models.sh" smollm2 || ready=no
[ $ready = yes ] || exit 1
"$root/tools/build.sh" release sluice_cli

question="Why is the sky blue?"
if [ $# -gt 0 ]; then
    question=$1
    shift
else
    echo "run.sh: asking \"$question\"; give another question as the first argument" >&2
fi
# A small model wanders off at the usual temperature; its makers advise 0.2 and 0.9. Options given here come later and win.
exec "$root/build/release/sluice" run smollm2 --chat --temperature 0.2 --top-p 0.9 --prompt "$question" "$@"
