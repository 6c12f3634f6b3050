#!/usr/bin/env python3
"""Write tests/data/golden: tiny models with what they compute, by an implementation that is not ours.

usage: make_golden.py ORACLE OUT

ORACLE is the folder of tiny models with expectations made by transformers (models/NAME/expected.json and
expected.safetensors, gguf/NAME-TYPE.gguf, quants/models.json and models.safetensors). Needs the PyPI packages numpy and
safetensors; torch, transformers and gguf as well for the files of EXACT below (without them those are left as they are).

What is written:
  NAME.vec        what transformers computes in float32 from the unquantised weights
  NAME-TYPE.vec   the same from the exactly dequantised weights of NAME-TYPE.gguf: no quantisation error is left, so an
                  engine with exact activations has to agree as closely as on a float file
  NAME-TYPE.gguf  the few models that belong to the project, one an architecture

The .vec format: text, one item a line, `#` begins a comment line. Numbers are decimal with nine digits, which gives the
same float32 back.

  model NAME
  n_vocab N
  prompt NAME             begins a prompt; what follows belongs to it
  ids N I...              the tokens (BOS included)
  argmax N I...           best next token at each position
  max N F...              its logit, at each position
  logsumexp N F...        log(sum(exp(logits))) at each position (NAME.vec only)
  last N F...             all logits of the last position
  logits N F...           all logits of all positions, position by position (prompt `short` of NAME.vec only)
  greedy N I...           greedy continuation (NAME.vec only)
  gaps N F...             best minus second logit at each greedy step
  noise TYPE NMSE MAX     the reference engine llama.cpp on NAME-TYPE.gguf: normalised squared error and largest
                          difference of `last` (NAME.vec only)
  window N                attention reaches back N tokens in these values, but the GGUF files, as llama.cpp's converter
                          writes them, do not say so: positions from N on cannot be compared (mistral_swa.vec only)
  end                     after the last prompt
"""
import argparse
import json
import os
import shutil
import sys

import numpy as np
from safetensors.numpy import load_file

MODELS = ["llama", "llama_bias", "llama_k256", "llama_linear_rope", "llama_rope3_tied", "llama_spm", "mistral",
          "mistral_swa", "qwen2", "qwen3", "qwen3_k256", "gemma3_text"]
QUANTS = ["f16", "bf16", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq4_nl",
          "iq4_xs"]
# Models that live in the tree, from the oracle's folders.
COPIES = ["gguf/llama_rope3_tied-f16.gguf", "gguf/llama_spm-q8_0.gguf", "gguf/qwen2-q8_0.gguf",
          "gguf/gemma3_text-q8_0.gguf", "quants/qwen3_k256-q4_k.gguf"]
# The same, with the key that llama.cpp's converter leaves out.
WITH_WINDOW = ["gguf/mistral_swa-q8_0.gguf"]
# Files whose exactly dequantised weights are run through transformers here.
EXACT = [("qwen2", "q8_0"), ("gemma3_text", "q8_0"), ("llama_rope3_tied", "q8_0"), ("llama_spm", "q8_0"),
         ("mistral_swa", "q8_0")]


def line_int(key, values):
    return f"{key} {len(values)} " + " ".join(str(int(v)) for v in values) + "\n"


def line_float(key, values):
    flat = np.asarray(values, dtype=np.float32).reshape(-1)
    return f"{key} {len(flat)} " + " ".join("%.9g" % v for v in flat) + "\n"


def head(name, what, n_vocab):
    return f"# {what}\nmodel {name}\nn_vocab {n_vocab}\n"


def write(out, name, text):
    path = os.path.join(out, name)
    with open(path, "w") as f:
        f.write(text)
    print(f"{name}: {len(text)} bytes")


def window(oracle, name):
    """The line about a window that the GGUF file does not name."""
    config = json.load(open(f"{oracle}/models/{name}/config.json"))
    if config["model_type"] == "mistral" and config.get("sliding_window"):
        return f"window {config['sliding_window']}\n"
    return ""


def plain(oracle, out, name, noise):
    info = json.load(open(f"{oracle}/models/{name}/expected.json"))
    want = load_file(f"{oracle}/models/{name}/expected.safetensors")
    n_vocab = want["one.last_logits"].shape[-1]
    text = head(name, f"{info['architecture']} by transformers {info['transformers']}, float32, seed {info['seed']}",
                n_vocab)
    text += window(oracle, name)
    for prompt, p in info["prompts"].items():
        text += f"prompt {prompt}\n" + line_int("ids", p["ids"]) + line_int("argmax", p["argmax"])
        text += line_float("max", want[f"{prompt}.max"]) + line_float("logsumexp", want[f"{prompt}.logsumexp"])
        text += line_float("last", want[f"{prompt}.last_logits"])
        if f"{prompt}.logits" in want:
            text += line_float("logits", want[f"{prompt}.logits"])
        # Where caching changed the tokens inside transformers, the tokens of whole passes are the truth.
        text += line_int("greedy", p.get("greedy_full", p["greedy"]))
        text += line_float("gaps", p["greedy_gaps"])
        for kind in ("f32", "f16", "q8_0"):
            row = noise.get(f"{name}-{kind}", {}).get(prompt)
            if row:
                text += f"noise {kind} {row['nmse']:.3e} {row['max_diff']:.3e}\n"
    write(out, f"{name}.vec", text + "end\n")


def quants(oracle, out):
    info = json.load(open(f"{oracle}/quants/models.json"))
    want = load_file(f"{oracle}/quants/models.safetensors")
    for kind in QUANTS:
        row = info["results"][kind]
        name = row["file"][:-len(".gguf")]
        n_vocab = want[f"{kind}.short.last_logits"].shape[-1]
        text = head(name, f"exactly dequantised weights of {row['file']} ({' '.join(row['types'])})", n_vocab)
        for prompt, p in row["prompts"].items():
            text += f"prompt {prompt}\n" + line_int("ids", p["ids"]) + line_int("argmax", p["argmax"])
            text += line_float("max", want[f"{kind}.{prompt}.max"])
            text += line_float("last", want[f"{kind}.{prompt}.last_logits"])
        write(out, f"{name}.vec", text + "end\n")


def unpermute(rows, n_head):
    """GGUF's llama files hold Q and K with each head's rows interleaved; transformers wants the two halves."""
    return rows.reshape(n_head, rows.shape[0] // n_head // 2, 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def exact(oracle, out, name, kind):
    import gguf
    import torch
    from gguf import quants as gguf_quants
    from transformers import AutoModelForCausalLM
    torch.set_num_threads(1)
    source = f"{oracle}/models/{name}"
    model = AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32, attn_implementation="eager").eval()
    config = model.config
    number = {v: k for k, v in gguf.MODEL_ARCH_NAMES.items()}
    arch = number[{"gemma3_text": "gemma3", "mistral": "llama"}.get(config.model_type, config.model_type)]
    table = gguf.get_tensor_name_map(arch, config.num_hidden_layers)
    tensors = {}
    for t in gguf.GGUFReader(f"{oracle}/gguf/{name}-{kind}.gguf").tensors:
        shape = [int(n) for n in reversed(t.shape)]
        tensors[t.name] = np.array(gguf_quants.dequantize(t.data, t.tensor_type), dtype=np.float32).reshape(shape)
    state = {}
    for key, old in model.state_dict().items():
        base, suffix = key.rsplit(".", 1)
        gguf_name = table.get_name(base)
        gguf_name = (gguf_name or base) + "." + suffix
        if gguf_name not in tensors and key == "lm_head.weight":
            gguf_name = "token_embd.weight"
        value = tensors[gguf_name]
        if arch == number["llama"] and "attn_q." in gguf_name:
            value = unpermute(value, config.num_attention_heads)
        if arch == number["llama"] and "attn_k." in gguf_name:
            value = unpermute(value, config.num_key_value_heads)
        if arch == number["gemma3"] and "norm" in gguf_name:
            value = value - 1.0
        assert value.shape == tuple(old.shape), (key, gguf_name, value.shape, old.shape)
        state[key] = torch.tensor(np.ascontiguousarray(value))
    model.load_state_dict(state, strict=True)
    info = json.load(open(f"{source}/expected.json"))
    text = head(f"{name}-{kind}", f"exactly dequantised weights of {name}-{kind}.gguf", config.vocab_size)
    text += window(oracle, name)
    for prompt, p in info["prompts"].items():
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([p["ids"]]), use_cache=False).logits[0].float().numpy()
        text += f"prompt {prompt}\n" + line_int("ids", p["ids"]) + line_int("argmax", logits.argmax(-1))
        text += line_float("max", logits.max(-1)) + line_float("last", logits[-1])
    write(out, f"{name}-{kind}.vec", text + "end\n")


def with_window(oracle, out, path):
    import gguf
    name = os.path.basename(path).rsplit("-", 1)[0]
    reader = gguf.GGUFReader(f"{oracle}/{path}")
    arch = reader.fields["general.architecture"].contents()
    writer = gguf.GGUFWriter(os.path.join(out, os.path.basename(path)), arch)
    for key, field in reader.fields.items():
        if key.startswith("GGUF.") or key == "general.architecture":
            continue
        if field.types[0] == gguf.GGUFValueType.ARRAY:
            writer.add_key_value(key, field.contents(), field.types[0], field.types[1])
        else:
            writer.add_key_value(key, field.contents(), field.types[0])
    writer.add_uint32(f"{arch}.attention.sliding_window", int(window(oracle, name).split()[1]))
    for t in reader.tensors:
        writer.add_tensor(t.name, np.array(t.data), raw_dtype=t.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("oracle")
    ap.add_argument("out")
    args = ap.parse_args()
    os.makedirs(args.out, exist_ok=True)
    noise = json.load(open(f"{args.oracle}/gguf/compare_llama_cpp.json"))
    for name in MODELS:
        plain(args.oracle, args.out, name, noise)
    quants(args.oracle, args.out)
    for path in COPIES:
        target = os.path.join(args.out, os.path.basename(path))
        if os.path.exists(target):
            os.remove(target)
        shutil.copyfile(f"{args.oracle}/{path}", target)
    try:
        import torch, transformers, gguf  # noqa: F401
    except ImportError as e:
        print(f"left as they are, for want of {e.name}: " + ", ".join(f"{n}-{k}.vec" for n, k in EXACT))
        return
    for path in WITH_WINDOW:
        with_window(args.oracle, args.out, path)
    for name, kind in EXACT:
        exact(args.oracle, args.out, name, kind)


if __name__ == "__main__":
    sys.exit(main())
