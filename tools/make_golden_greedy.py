#!/usr/bin/env python3
"""Write tests/data/golden/greedy_exact.json: what real models say when nothing but their weights is quantised.

usage: make_golden_greedy.py LLAMA_COMPLETION MODELS GREEDY_JSON OUT_JSON [--work DIR]

GREEDY_JSON (tests/data/golden/greedy.json) names models, files and prompts, and holds the reference engine's text with
8-bit activations. Their rounding moves logits by some tenths, enough to send a text another way at any step that is not
clear-cut. So here each file of MODELS/NAME/FILE is dequantised to float32 (with the PyPI package gguf, exactly what its
blocks mean) and the same program continues the same prompts from that, with a float32 KV cache. An engine with exact
activations has to give this text from the quantised file; only a tie within float32 rounding could part them.

The dequantised copies take four bytes a weight in DIR and are removed again. The program's two line ends after the last
token are kept as it prints them, as in GREEDY_JSON."""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import gguf
import numpy as np
from gguf import quants


def dequantise(source, target):
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, reader.fields["general.architecture"].contents())
    for key, field in reader.fields.items():
        if key.startswith("GGUF.") or key == "general.architecture":
            continue
        if field.types[0] == gguf.GGUFValueType.ARRAY:
            writer.add_key_value(key, field.contents(), field.types[0], field.types[1])
        else:
            writer.add_key_value(key, field.contents(), field.types[0])
    for t in reader.tensors:
        shape = [int(n) for n in reversed(t.shape)]
        writer.add_tensor(t.name, np.array(quants.dequantize(t.data, t.tensor_type), dtype=np.float32).reshape(shape))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("completion")
    ap.add_argument("models")
    ap.add_argument("greedy")
    ap.add_argument("out")
    ap.add_argument("--work", default=tempfile.gettempdir())
    args = ap.parse_args()
    known = json.load(open(args.greedy))
    result = {}
    for name, row in known.items():
        plain = os.path.join(args.work, f"{name}-f32.gguf")
        dequantise(f"{args.models}/{name}/{row['file']}", plain)
        cases = []
        for case in row["cases"]:
            run = subprocess.run([args.completion, "-m", plain, "-p", case["prompt"], "-n", str(row["n"]), "--temp", "0",
                                  "-no-cnv", "--no-display-prompt", "-t", "2", "-c", "512", "--no-repack", "--no-warmup",
                                  "-fa", "off", "-ctk", "f32", "-ctv", "f32"], capture_output=True, stdin=subprocess.DEVNULL)
            if run.returncode != 0:
                sys.exit(run.stderr.decode("utf-8", "replace")[-2000:])
            cases.append({"prompt": case["prompt"], "text": run.stdout.decode("utf-8", "replace")})
            print(name, repr(case["prompt"]), "->", repr(cases[-1]["text"][:60]), flush=True)
        os.remove(plain)
        result[name] = {"file": row["file"], "n": row["n"], "cases": cases}
    with open(args.out, "w") as f:
        json.dump(result, f, ensure_ascii=False, indent=1)
        f.write("\n")


if __name__ == "__main__":
    main()
