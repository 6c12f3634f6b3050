#!/usr/bin/env python3
"""make_quant_vectors.py - what an independent implementation makes of the block formats, for tests/test_quant*.c.

    python3 tools/make_quant_vectors.py [--ggml libggml-base.so] [OUT = tests/data/quant]

Needs numpy and the `gguf` package (or PYTHONPATH at a newer gguf-py: Q2_0 and the right size of Q8_1 came after 0.19.0).
Writes

    types.txt        a line a type of the package:  NAME id elements bytes
    NAME.decode      random blocks, then what the package decodes them to (f32); no header: the sizes tell the count
    NAME.encode      numbers (f32), then the blocks that the package makes of them; types that it can make
    numbers.f16      three sets of 16384 numbers: normal, heavy tails (Student's t, 4 degrees), normal around 0.5
    errors.txt       a line a type: NAME and, a set, the root mean square error of the reference engine's quantiser.
                     Only with --ggml (its ggml_quantize_chunk without importances); else the file stays as it is.

All little-endian, and the same bytes every time."""
import argparse
import ctypes
import os

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize, quantize

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DECODE = "F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL IQ4_XS".split()
PLAIN = {"F32": "<f4", "F64": "<f8", "I8": "i1", "I16": "<i2", "I32": "<i4", "I64": "<i8"}
ENCODE = "F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0".split()
SEARCHED = "Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL IQ4_XS".split()
# Where the half-precision scales are in a block.
HALVES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108],
          "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0], "IQ4_XS": [0]}


def write(out, name, *arrays):
    with open(os.path.join(out, name), "wb") as f:
        for a in arrays:
            f.write(np.ascontiguousarray(a).tobytes())


def random_blocks(rng, name, n_block, n_byte):
    blocks = rng.integers(0, 256, (n_block, n_byte), dtype=np.uint8)
    for at in HALVES.get(name, []):
        halves = (rng.standard_normal(n_block) * 2.0 ** rng.integers(-22, 12, n_block)).astype("<f2")
        halves[0] = 0.0
        halves[1] = -6e-8  # the smallest subnormal
        halves[2] = 65504.0
        blocks[:, at:at + 2] = halves.view(np.uint8).reshape(n_block, 2)
    blocks[3] = 0
    blocks[4] = 255  # NaN scales
    return blocks


def encoder_input(rng, n_elem):
    """Rows of blocks at many sizes, constant and zero ones, ties between codes, and one-sided ones."""
    n_block = max(24, 768 // n_elem)
    x = rng.standard_normal((n_block, n_elem)) * 2.0 ** rng.integers(-14, 9, (n_block, 1))
    x[0] = 0.0
    x[1] = 0.75
    x[2] = -1.0 / 3.0
    x[3] = np.arange(n_elem) - n_elem / 2 + 0.5
    x[4] = abs(x[4])
    x[5] = -abs(x[5])
    x[6] = np.round(x[6] * 4) / 4 + 0.0  # + 0.0: no negative zeros, whose minimum nobody defines
    x[7] = 1e-7 * rng.standard_normal(n_elem)
    x[8] = 60000.0 * np.sin(np.arange(n_elem) + 1.0)
    return x.astype("<f4")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", nargs="?", default=os.path.join(ROOT, "tests", "data", "quant"))
    parser.add_argument("--ggml")
    args = parser.parse_args()
    out = args.out
    os.makedirs(out, exist_ok=True)

    with open(os.path.join(out, "types.txt"), "w") as f:
        for t in sorted(GGMLQuantizationType, key=lambda t: t.value):
            f.write(f"{t.name} {t.value} {GGML_QUANT_SIZES[t][0]} {GGML_QUANT_SIZES[t][1]}\n")

    for name in DECODE:
        t = GGMLQuantizationType[name]
        n_elem, n_byte = GGML_QUANT_SIZES[t]
        rng = np.random.default_rng(t.value)
        blocks = random_blocks(rng, name, 12 if n_elem == 256 else 40 if n_elem > 1 else 512, n_byte)
        with np.errstate(all="ignore"):
            values = dequantize(blocks, t)
        write(out, name + ".decode", blocks, values.astype("<f4"))
    for name, dtype in PLAIN.items():
        rng = np.random.default_rng(100)
        raw = rng.integers(0, 256, (256, np.dtype(dtype).itemsize), dtype=np.uint8)
        raw[0] = 0
        raw[1] = 255
        raw[2, -1] = 128
        with np.errstate(all="ignore"):
            write(out, name + ".decode", raw, raw.view(dtype).astype("<f4"))
    for name in ENCODE:
        t = GGMLQuantizationType[name]
        x = encoder_input(np.random.default_rng(200 + t.value), GGML_QUANT_SIZES[t][0])
        with np.errstate(all="ignore"):
            write(out, name + ".encode", x, quantize(x, t).view(np.uint8))

    rng = np.random.default_rng(300)
    sets = [rng.standard_normal(16384), rng.standard_t(4, 16384), rng.standard_normal(16384) + 0.5]
    sets = [s.astype("<f2") for s in sets]
    write(out, "numbers.f16", *sets)
    if args.ggml is not None:
        lib = ctypes.CDLL(args.ggml)
        pointer = ctypes.c_void_p
        lib.ggml_quantize_chunk.restype = ctypes.c_size_t
        lib.ggml_quantize_chunk.argtypes = [ctypes.c_int, pointer, pointer] + [ctypes.c_int64] * 3 + [pointer]
        with open(os.path.join(out, "errors.txt"), "w") as f:
            for name in SEARCHED + [n for n in ENCODE if n.startswith("Q")]:
                t = GGMLQuantizationType[name]
                n_elem, n_byte = GGML_QUANT_SIZES[t]
                line = name
                for s in sets:
                    x = s.astype("<f4")
                    q = np.zeros((x.size // n_elem, n_byte), dtype=np.uint8)
                    lib.ggml_quantize_chunk(t.value, x.ctypes.data, q.ctypes.data, 0, 16, x.size // 16, None)
                    error = dequantize(q, t).ravel().astype(np.float64) - x
                    line += f" {np.sqrt(np.mean(error ** 2)):.6f}"
                f.write(line + "\n")


if __name__ == "__main__":
    main()
