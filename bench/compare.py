#!/usr/bin/env python3
"""compare.py - decode speed of sluice and of llama.cpp, interleaved on one machine.

    bench/compare.py --sluice build/release/sluice --llama DIR_WITH_LLAMA_BENCH MODEL.gguf [-n 64] [-t 2] [-r 5]

Each pair runs sluice, then llama-bench, on the same file, threads and number of tokens; the figure is the ratio of their
tokens per second, its median and its spread over the pairs. Beside the speed stands a check: sluice's greedy text must be
the same in every run, and the beginning that it shares with the reference's greedy text is printed (int8 arithmetic of two
engines may part at a near-tie). Run it on a quiet machine: both engines lose far more than the other load takes.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

PROMPT = "Once upon a time, in a small village near the sea, there lived"


def ours(args, model):
    command = [args.sluice, "run", model, "--json", "--quiet", "--temperature", "0", "--ignore-eog", "--threads", str(args.t),
               "--max-tokens", str(args.n), "--prompt", PROMPT]
    done = subprocess.run(command, capture_output=True, check=True)
    result = json.loads(done.stdout)
    return result["tok_s"]["decode"], result["text"]


def theirs(args, model):
    command = [os.path.join(args.llama, "llama-bench"), "-m", model, "-p", "0", "-n", str(args.n), "-r", "1", "-t", str(args.t),
               "-o", "json"]
    done = subprocess.run(command, capture_output=True, check=True)
    return json.loads(done.stdout)[0]["avg_ts"]


def their_text(args, model):
    command = [os.path.join(args.llama, "llama-completion"), "-m", model, "-p", PROMPT, "-n", str(args.n), "--temp", "0", "-no-cnv",
               "--no-display-prompt", "-t", str(args.t), "-c", "512", "--no-warmup", "--ignore-eos"]
    done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, check=True)
    return done.stdout.decode("utf-8", "replace")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="+", metavar="MODEL.gguf")
    parser.add_argument("--sluice", default="build/release/sluice")
    parser.add_argument("--llama", required=True, help="folder with llama-bench and llama-completion")
    parser.add_argument("-n", type=int, default=64, help="tokens to generate (64)")
    parser.add_argument("-t", type=int, default=2, help="threads (2)")
    parser.add_argument("-r", type=int, default=5, help="pairs (5)")
    args = parser.parse_args()
    for model in args.models:
        ours(args, model)  # one run of each to warm the page cache
        theirs(args, model)
        rows, texts = [], set()
        for i in range(args.r):
            a, text = ours(args, model)
            b = theirs(args, model)
            texts.add(text)
            rows.append((a, b, a / b))
            print(f"  {i + 1}: sluice {a:7.2f}  llama.cpp {b:7.2f} tok/s  ratio {a / b:.2f}", flush=True)
        ratios = [row[2] for row in rows]
        text = texts.pop()
        same = os.path.commonprefix([text, their_text(args, model)])
        print(f"{os.path.basename(model)}: decode ratio {statistics.median(ratios):.2f} (from {min(ratios):.2f} to {max(ratios):.2f}), "
              f"sluice {statistics.median(r[0] for r in rows):.1f} tok/s, llama.cpp {statistics.median(r[1] for r in rows):.1f} tok/s, "
              f"{args.t} threads, {args.n} tokens; greedy text {'equal in all runs' if not texts else 'DIFFERS BETWEEN RUNS'}, "
              f"shares {len(same)} of {len(text)} characters with the reference's", flush=True)
        if texts:
            sys.exit(1)


if __name__ == "__main__":
    main()
