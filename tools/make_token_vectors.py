#!/usr/bin/env python3
"""Write tests/data/token/: texts, tiny tokenizer.json files, and the ids that independent implementations give.

usage: make_token_vectors.py ORACLE CASES VOCABS OUT

ORACLE  folder with tokenizers/ (inputs.json, NAME/tokenizer.json, NAME/expected.json of the `tokenizers` and
        `sentencepiece` libraries) and vocab_expected/ (the same for real vocabularies)
CASES   folder with tokenizer_vectors.json
VOCABS  folder with ggml-vocab-*.gguf.inp and .out, the pairs that the reference engine publishes

inputs.txt   NAME HEX            a text
             NAME HEX*COUNT      a text repeated
NAME.vec     json FILE           the vocabulary: a tokenizer.json beside it
             golden FILE         ... a GGUF file of tests/data/golden
             vocab FILE          ... a vocabulary-only GGUF, tested where it has been fetched
             i TEXT IDS...       ids without BOS and EOS
             n TEXT IDS...       the same with control tokens off
             s TEXT IDS...       ids with them
             b TEXT N HEAD... TAIL...   a long result: its length, the first 24 and the last 24 ids
             d TEXT HEX          what the ids of "i" decode to, where that is not the text
"""
import json
import os
import shutil
import sys
import unicodedata

TINY = ("bpe_gpt2 bpe_llama3 bpe_qwen2 bpe_qwen35 bpe_smollm bpe_starcoder bpe_o200k bpe_tekken bpe_deepseek3 bpe_glm4 "
        "bpe_olmo spm_gemma spm_llama").split()
REAL = "deepseek-coder falcon gpt-2 llama-bpe llama-spm baichuan qwen2 qwen35 starcoder".split()
PAIRS = ("command-r deepseek-coder falcon gpt-2 llama-bpe llama-spm mpt phi-3 qwen2 qwen35 refact starcoder").split()
# Known by heart in the field: with BOS, control tokens recognised.
FAMOUS = {
    "llama-bpe": [("\n", [128000, 198]), ("example\nexample", [128000, 8858, 198, 8858])],
    "llama-spm": [("This is 🦙.cpp", [1, 910, 338, 29871, 243, 162, 169, 156, 29889, 8223]),
                  ("The train is moving very fast!", [1, 450, 7945, 338, 8401, 1407, 5172, 29991]),
                  # llama.cpp issue 4772 says 1 420 of Mistral's vocabulary; this is the same "▁G" in Llama 2's.
                  ("<s>G", [1, 402])],
}


class Out:
    def __init__(self, folder):
        self.folder, self.names, self.lines = folder, {}, []

    def name(self, text, want=None):
        """The name of a text; new ones are written down."""
        if text not in self.names:
            self.names[text] = want or f"t{len(self.names)}"
            self.lines.append(f"{self.names[text]} {text.hex()}")
        return self.names[text]

    def repeat(self, name, unit, count):
        self.lines.append(f"{name} {unit.hex()}*{count}")

    def vec(self, name, lines):
        with open(f"{self.folder}/{name}.vec", "w") as f:
            f.write("\n".join(lines) + "\n")


def numbers(ids):
    return " ".join(map(str, ids))


def rows(out, cases, texts, repeats, skip, letter="i"):
    lines = []
    for name, row in cases.items():
        if name in skip or name.startswith("raw_"):
            continue
        if name in repeats:
            lines.append(f"b {name} {row['n']} {numbers(row['head'])} {numbers(row['tail'])}")
        elif name in texts:
            text = texts[name].encode()
            lines.append(f"{letter} {out.name(text, name)} {numbers(row['ids'])}".rstrip())
            if "ids_special" in row:
                lines.append(f"s {out.name(text, name)} {numbers(row['ids_special'])}")
            back = row.get("text", texts[name])
            if back != texts[name] and letter == "i" and "\ufffd" not in back:
                lines.append(f"d {out.name(text, name)} {back.encode().hex()}")
    return lines


def main():
    oracle, cases, vocabs, folder = sys.argv[1:5]
    os.makedirs(folder, exist_ok=True)
    out = Out(folder)
    inputs = json.load(open(f"{oracle}/tokenizers/inputs.json"))
    texts, repeats = inputs["texts"], inputs["repeats"]
    # A difference that is meant: GGUF vocabularies are used without NFC.
    not_nfc = {name for name, text in texts.items() if unicodedata.normalize("NFC", text) != text}
    for name, text in texts.items():
        out.name(text.encode(), name)
    for name, (unit, count) in repeats.items():
        out.repeat(name, unit.encode(), count)
    for name in TINY:
        shutil.copyfile(f"{oracle}/tokenizers/{name}/tokenizer.json", f"{folder}/{name}.json")
        expected = json.load(open(f"{oracle}/tokenizers/{name}/expected.json"))
        out.vec(name, [f"json {name}.json"] + rows(out, expected["hf"], texts, repeats, ()))
    # The same vocabularies inside GGUF files. What the model file calls control tokens, the sentencepiece model behind
    # the expectation calls user-defined, so texts with those are left out.
    odd = {"special_inline", "special_adjacent", "special_spaces"}
    for golden, name in (("llama_spm-q8_0", "spm_llama"), ("gemma3_text-q8_0", "spm_gemma")):
        expected = json.load(open(f"{oracle}/tokenizers/{name}/expected.json"))["sp"]
        for row in expected.values():
            row.pop("text", None)
        out.vec(golden, [f"golden {golden}.gguf"] + rows(out, expected, texts, repeats, odd, "n"))
    expected = json.load(open(f"{oracle}/tokenizers/bpe_qwen2/expected.json"))["hf"]
    out.vec("qwen2-q8_0", ["golden qwen2-q8_0.gguf"] + rows(out, expected, texts, repeats, not_nfc))
    # Real vocabularies.
    vectors = json.load(open(f"{cases}/tokenizer_vectors.json"))
    real = {}
    for name in REAL:
        expected = json.load(open(f"{oracle}/vocab_expected/{name}.json"))["cases"]
        spm = name in ("llama-spm", "baichuan")
        if spm:
            for row in expected.values():
                row.pop("text", None)
        skip = not_nfc if name == "qwen2" else ()
        real.setdefault(name, []).extend(rows(out, expected, texts, repeats, skip, "n" if spm else "i"))
        if name == "deepseek-coder":            # the library prints literal tokens through its byte alphabet
            real[name] = [line for line in real[name] if not line.startswith("d ")]
    for name, lists in vectors["ids"].items():
        if name in PAIRS:
            for text, ids in zip(vectors["texts"], lists):
                real.setdefault(name, []).append(f"i {out.name(text.encode())} {numbers(ids)}".rstrip())
    for name in PAIRS:
        path = f"{vocabs}/ggml-vocab-{name}.gguf"
        pairs = open(path + ".inp", encoding="utf-8", newline="").read().split("\n__ggml_vocab_test__\n")
        for text, line in zip(pairs, open(path + ".out").read().split("\n")):
            real.setdefault(name, []).append(f"n {out.name(text.encode())} {numbers(line.split())}".rstrip())
        for text, ids in FAMOUS.get(name, ()):
            real[name].append(f"s {out.name(text.encode())} {numbers(ids)}")
    for name, lines in real.items():
        out.vec("vocab-" + name, [f"vocab ggml-vocab-{name}.gguf"] + list(dict.fromkeys(lines)))
    with open(f"{folder}/inputs.txt", "w") as f:
        f.write("\n".join(out.lines) + "\n")


if __name__ == "__main__":
    main()
