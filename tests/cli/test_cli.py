#!/usr/bin/env python3
"""test_cli.py SLUICE GROUP - the program from outside: words, exit codes, JSON, streams and signals.

Groups: help, usage, output, files need no model; tiny uses the small models of tests/data/golden; model uses the
default model where it has been fetched. A group of which everything is skipped ends with 77."""
import glob
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SLUICE = ""
GOLDEN = os.path.join(os.path.dirname(HERE), "data", "golden")
TIMEOUT_S = 300


class Cli(unittest.TestCase):
    """Runs the program in an empty home of its own."""
    maxDiff = None

    def setUp(self):
        self.home = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.home)
        self.env = {k: v for k, v in os.environ.items() if k not in ("SLUICE_MODELS", "XDG_CACHE_HOME")}
        self.env["HOME"] = self.home

    def run_cli(self, *args, stdin=b"", **more):
        done = subprocess.run([SLUICE] + list(args), input=stdin, capture_output=True, env=self.env, timeout=TIMEOUT_S, **more)
        return done.returncode, done.stdout, done.stderr.decode()

    def ok(self, *args, stdin=b""):
        code, out, err = self.run_cli(*args, stdin=stdin)
        self.assertEqual(code, 0, err)
        return out, err

    def ok_json(self, *args, stdin=b""):
        out, err = self.ok(*args, stdin=stdin)
        self.assertEqual(err, "")
        self.assertEqual(out.count(b"\n"), 1)
        return json.loads(out.decode("utf-8"), parse_constant=lambda word: self.fail("not JSON: " + word))

    def fails(self, code, words, *args, stdin=b""):
        """The one line on stderr is exactly `sluice: <words>`, or matches when words is a compiled pattern."""
        got, out, err = self.run_cli(*args, stdin=stdin)
        self.assertEqual(out, b"")
        if isinstance(words, str):
            self.assertEqual(err, "sluice: %s\n" % words)
        else:
            self.assertRegex(err, words)
            self.assertEqual(err.count("\n"), 1, err)
            self.assertTrue(err.startswith("sluice: "), err)
        self.assertEqual(got, code)

    def on_terminal(self, *args):
        """Exit code and all bytes of a run whose three streams are a terminal."""
        pid, master = pty.fork()
        if pid == 0:
            os.execve(SLUICE, [SLUICE] + list(args), self.env)
        seen = b""
        end = time.monotonic() + TIMEOUT_S
        while time.monotonic() < end:
            ready, _, _ = select.select([master], [], [], 1.0)
            if ready:
                try:
                    piece = os.read(master, 65536)
                except OSError:
                    break
                if not piece:
                    break
                seen += piece
        os.close(master)
        _, status = os.waitpid(pid, 0)
        return os.waitstatus_to_exitcode(status), seen


class Help(Cli):
    COMMANDS = ("run", "tokenize", "inspect", "about")

    def test_commands_are_listed(self):
        out, _ = self.ok("--help")
        for command in self.COMMANDS:
            self.assertRegex(out.decode(), r"(?m)^  %s +\w" % command)
        self.assertEqual(self.ok("-h")[0], out)
        self.assertEqual(self.ok("help")[0], out)

    def test_each_command_teaches(self):
        for command in self.COMMANDS:
            out, err = self.ok(command, "--help")
            text = out.decode()
            self.assertEqual(err, "")
            self.assertTrue(text.startswith("Usage: sluice %s" % command))
            self.assertRegex(text, r"\nExamples:\n  (sluice|git|echo)")
            self.assertEqual([line for line in text.split("\n") if len(line) > 100 or line.endswith(" ")], [])
            self.assertEqual(self.ok(command, "-h")[0], out)
            self.assertEqual(self.ok("help", command)[0], out)

    def test_options_are_the_promised_ones(self):
        promised = {
            "run": "prompt file chat system max-tokens stop ignore-eog temperature top-k top-p min-p repeat-penalty seed ctx batch threads"
                   " isa store kv-type mem-limit tokenizer-json quiet json help",
            "tokenize": "model tokenizer-json ids no-bos json help",
            "inspect": "full store json help",
            "about": "json help",
        }
        for command, names in promised.items():
            text = self.ok(command, "--help")[0].decode()
            shown = set(re.findall(r"(?m)^  (?:-\w,|   ) --([\w-]+)", text))
            self.assertLessEqual(set(names.split()), shown)

    def test_help_wins_over_a_missing_argument(self):
        self.ok("run", "--help")
        self.ok("tokenize", "x", "--help")

    def test_version(self):
        self.assertRegex(self.ok("--version")[0].decode(), r"^\d+\.\d+\.\d+\n$")


class Usage(Cli):
    def test_words(self):
        missing = "run: a prompt is missing: -p TEXT, -p - for standard input, or -f FILE"
        size = "is not a size in bytes (for example 512MB or 1.5GiB)"
        for args, words in [
            ((), "a command is missing; 'sluice --help' lists them"),
            (("rum",), "unknown command 'rum'; did you mean 'run'?"),
            (("about:",), "unknown command 'about:'; did you mean 'about'?"),
            (("frobnicate",), "unknown command 'frobnicate'; 'sluice --help' lists what there is"),
            (("--hepl",), "unknown option '--hepl'; did you mean '--help'?"),
            (("help", "rum"), "unknown command 'rum'; did you mean 'run'?"),
            (("run",), "run: MODEL is missing: sluice run MODEL -p PROMPT [options]"),
            (("run", "m"), missing),
            (("run", "m", "n", "-p", "x"), "run: unexpected argument 'n': sluice run MODEL -p PROMPT [options]"),
            (("run", "m", "-p"), "run: --prompt needs a value (TEXT)"),
            (("run", "m", "--prompt"), "run: --prompt needs a value (TEXT)"),
            (("run", "m", "-p", "x", "-f", "y"), "run: --prompt and --file cannot both be given"),
            (("run", "m", "-p", "x", "--system", "y"), "run: --system needs --chat: without it the prompt is the whole text"),
            (("run", "m", "-p", "x", "--max-tokn", "3"), "run: unknown option '--max-tokn'; did you mean --max-tokens?"),
            # Shortened names are refused: a script with one would break when a longer sibling comes.
            (("run", "m", "-p", "x", "--max", "3"), "run: unknown option '--max'; did you mean --max-tokens?"),
            (("run", "m", "-p", "x", "--max=3"), "run: unknown option '--max'; did you mean --max-tokens?"),
            (("run", "m", "-p", "x", "--xyzzy"), "run: unknown option '--xyzzy'; 'sluice run --help' lists them"),
            (("run", "m", "-p", "x", "-z"), "run: unknown option '-z'; 'sluice run --help' lists them"),
            (("run", "m", "-p", "x", "--quiet=1"), "run: --quiet takes no value"),
            (("run", "m", "-p", "x", "--max-tokens", "12x"), "run: --max-tokens: '12x' is not a whole number (1 or more)"),
            (("run", "m", "-p", "x", "--max-tokens", ""), "run: --max-tokens: '' is not a whole number (1 or more)"),
            (("run", "m", "-p", "x", "--max-tokens", " 1"), "run: --max-tokens: ' 1' is not a whole number (1 or more)"),
            (("run", "m", "-p", "x", "--max-tokens", "+1"), "run: --max-tokens: '+1' is not a whole number (1 or more)"),
            (("run", "m", "-p", "x", "--max-tokens", "0x10"), "run: --max-tokens: '0x10' is not a whole number (1 or more)"),
            (("run", "m", "-p", "x", "--max-tokens", "0"), "run: --max-tokens: 0 is outside its range (1 or more)"),
            (("run", "m", "-p", "x", "--max-tokens", "2147483648"),
             "run: --max-tokens: 2147483648 is outside its range (1 or more)"),
            (("run", "m", "-p", "x", "--max-tokens", "99999999999999999999"),
             "run: --max-tokens: '99999999999999999999' is not a whole number (1 or more)"),
            (("run", "m", "-p", "x", "--temperature", "nan"), "run: --temperature: 'nan' is not a number (0 to 100)"),
            (("run", "m", "-p", "x", "--temperature", "inf"), "run: --temperature: 'inf' is not a number (0 to 100)"),
            (("run", "m", "-p", "x", "--temperature", "1e999"), "run: --temperature: '1e999' is not a number (0 to 100)"),
            (("run", "m", "-p", "x", "--temperature", "-0.5"), "run: --temperature: -0.5 is outside its range (0 to 100)"),
            (("run", "m", "-p", "x", "--top-p", "1.5"), "run: --top-p: 1.5 is outside its range (0 to 1)"),
            (("run", "m", "-p", "x", "--top-p", "0,5"), "run: --top-p: '0,5' is not a number (0 to 1)"),
            (("run", "m", "-p", "x", "--min-p", "-1"), "run: --min-p: -1 is outside its range (0 to 1)"),
            (("run", "m", "-p", "x", "--top-k", "-1"), "run: --top-k: -1 is outside its range (0 or more)"),
            (("run", "m", "-p", "x", "--seed", "-1"), "run: --seed: '-1' is not a whole number (0 to 18446744073709551615)"),
            (("run", "m", "-p", "x", "--seed", "18446744073709551616"),
             "run: --seed: '18446744073709551616' is not a whole number (0 to 18446744073709551615)"),
            (("run", "m", "-p", "x", "--threads", "0"), "run: --threads: 0 is outside its range (1 to 256)"),
            (("run", "m", "-p", "x", "--threads", "257"), "run: --threads: 257 is outside its range (1 to 256)"),
            (("run", "m", "-p", "x", "--threads", "all"), "run: --threads: 'all' is neither 'auto' nor a whole number (1 to 256)"),
            (("run", "m", "-p", "x", "--ctx", "0"), "run: --ctx: 0 is outside its range (1 to 268435456)"),
            (("run", "m", "-p", "x", "--batch", "0"), "run: --batch: 0 is outside its range (1 to 4096)"),
            (("run", "m", "-p", "x", "--mem-limit", "lots"), "run: --mem-limit: 'lots' " + size),
            (("run", "m", "-p", "x", "--mem-limit", "0"), "run: --mem-limit: '0' " + size),
            (("run", "m", "-p", "x", "--mem-limit", "-1"), "run: --mem-limit: '-1' " + size),
            (("run", "m", "-p", "x", "--mem-limit", "5XB"), "run: --mem-limit: '5XB' " + size),
            (("run", "m", "-p", "x", "--mem-limit", "99999999TB"), "run: --mem-limit: '99999999TB' " + size),
            (("run", "m", "-p", "x", "--stop", ""), "run: --stop: a stop string has 1 to 1024 bytes, not 0"),
            (("run", "m", "-p", "x") + ("--stop", "s") * 17, "run: --stop: given more than 16 times"),
            (("run", "", "-p", "x"), "MODEL is empty; give the path of a model file or the name of a model"),
            (("tokenize", "x"), "tokenize: --model is missing: whose vocabulary?"),
            (("tokenize", "--model", "m"), "tokenize: TEXT is missing: sluice tokenize TEXT --model MODEL [options]"),
            (("tokenize", "x", "--model", "m", "--idz"), "tokenize: unknown option '--idz'; did you mean --ids?"),
            (("inspect",), "inspect: MODEL is missing: sluice inspect MODEL [--full] [options]"),
            (("about", "x"), "about: unexpected argument 'x': sluice about [--json]"),
        ]:
            with self.subTest(args=args):
                self.fails(2, words, *args)

    def test_message_is_one_safe_line(self):
        _, _, err = self.run_cli("a\x1b[31m\nb\x07\u202e")
        self.assertEqual(err, "sluice: unknown command 'a?[31m?b??'; 'sluice --help' lists what there is\n")
        _, _, err = self.run_cli(b"\xff\xfe".decode("utf-8", "surrogateescape"))
        self.assertEqual(err, "sluice: unknown command '??'; 'sluice --help' lists what there is\n")

    def test_very_long_words_end(self):
        code, _, err = self.run_cli("run", "m", "-p", "x", "--" + "y" * 100000)
        self.assertEqual(code, 2)
        self.assertEqual(err.count("\n"), 1)
        self.assertLess(len(err), 4096)

    def test_engine_options(self):
        """What the library refuses about an option is wrong usage too, and names what there is."""
        self.fails(2, re.compile(r"run: there are no kernels .*'foo'; known: scalar"), "run", "/", "-p", "x", "--isa", "foo")
        self.fails(2, "run: --store: 'foo' is no store; a path can be read by mmap or direct",
                   "run", "/", "-p", "x", "--store", "foo")


class Output(Cli):
    def test_about(self):
        about = self.ok_json("about", "--json")
        self.assertEqual(set(about), set("version isa isas archs types stores backends n_thread n_core ram_bytes models_folder"
                                         " models".split()))
        self.assertIn(about["isa"], about["isas"])
        self.assertLessEqual({"llama", "qwen2", "qwen3", "gemma3"}, set(about["archs"]))
        self.assertIn("Q4_K", about["types"])
        self.assertEqual(about["models"], [])
        self.assertGreaterEqual(about["n_core"], 1)
        out, err = self.ok("about")
        self.assertEqual(err, "")
        self.assertIn(about["version"], out.decode())

    def test_models_folder(self):
        def folder():
            return self.ok_json("about", "--json")["models_folder"]
        self.assertEqual(folder(), self.home + "/.cache/sluice/models")
        self.env["XDG_CACHE_HOME"] = self.home + "/xdg"
        self.assertEqual(folder(), self.home + "/xdg/sluice/models")
        self.env["SLUICE_MODELS"] = self.home + "/models"
        self.assertEqual(folder(), self.home + "/models")
        del self.env["HOME"], self.env["XDG_CACHE_HOME"], self.env["SLUICE_MODELS"]
        self.assertIsNone(folder())

    def test_full_disk(self):
        for args in (("about",), ("about", "--json"), ("--help",), ("run", "--help")):
            with open("/dev/full", "wb") as full:
                done = subprocess.run([SLUICE] + list(args), stdout=full, stderr=subprocess.PIPE, env=self.env, timeout=TIMEOUT_S)
            self.assertEqual(done.stderr.decode(), "sluice: the output could not be written: No space left on device\n")
            self.assertEqual(done.returncode, 1)

    def test_reader_goes_away(self):
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run([SLUICE, "run", "--help"], stdout=writer, stderr=subprocess.PIPE, env=self.env, timeout=TIMEOUT_S)
        os.close(writer)
        self.assertEqual(done.stderr, b"")
        self.assertEqual(done.returncode, 1)

    def test_closed_output(self):
        code = subprocess.run(["sh", "-c", '"$0" about >&-', SLUICE], stderr=subprocess.DEVNULL, env=self.env).returncode
        self.assertEqual(code, 1)


class Files(Cli):
    def write(self, name, data):
        path = os.path.join(self.home, name)
        with open(path, "wb") as f:
            f.write(data)
        return path

    def each_command(self, path):
        return (("run", path, "-p", "x"), ("inspect", path), ("tokenize", "x", "--model", path), ("inspect", path, "--json"))

    def test_missing_file(self):
        path = self.home + "/none.gguf"
        for args in self.each_command(path):
            self.fails(1, re.compile(re.escape(path) + r".*[Nn]o such file"), *args)

    def test_directory(self):
        for args in self.each_command(self.home + "/"):
            self.fails(1, re.compile(r"directory"), *args)

    def test_unreadable(self):
        path = self.write("secret.gguf", b"GGUF")
        os.chmod(path, 0)
        if os.access(path, os.R_OK):
            self.skipTest("this user may read everything")
        for args in self.each_command(path):
            self.fails(1, re.compile(r"[Pp]ermission denied"), *args)

    def test_no_model(self):
        for name, data, words in [("empty.gguf", b"", r"empty"), ("text.gguf", b"hello, world\n" * 20, r"not a model file"),
                                  ("page.gguf", b"<!DOCTYPE html><html>" + b" " * 100, r"HTML"),
                                  ("short.gguf", b"GGUF\x03\x00\x00\x00", r"short\.gguf")]:
            path = self.write(name, data)
            for args in self.each_command(path):
                self.fails(1, re.compile(words), *args)

    def test_no_such_name(self):
        folder = self.home + "/.cache/sluice/models"
        self.fails(1, "there is no file 'foo' and no fetched model of that name in %s (there are none); tools/fetch-models.sh"
                      " NAME fetches one, a path with a '/' names a file" % folder, "run", "foo", "-p", "x")
        for name in ("beta", "alpha", "several", "later", "none"):
            os.makedirs("%s/%s" % (folder, name))
        for file in ("beta/b.gguf", "alpha/a.gguf", "several/1.gguf", "several/2.gguf",
                     "later/x-00001-of-00002.gguf", "later/x-00002-of-00002.gguf"):
            self.write(".cache/sluice/models/" + file, b"no model")
        self.fails(1, "there is no file 'foo' and no fetched model of that name in %s (there are: alpha, beta, later); "
                      "tools/fetch-models.sh NAME fetches one, a path with a '/' names a file" % folder, "inspect", "foo")
        self.fails(1, "'several' has several model files; give the path of one in %s/several" % folder, "inspect", "several")
        # The name leads to the file, whose fault is then named; of a split model to its first part.
        self.fails(1, re.compile("alpha/a.gguf"), "inspect", "alpha")
        self.fails(1, re.compile("x-00001-of-00002.gguf"), "inspect", "later")
        models = self.ok_json("about", "--json")["models"]
        self.assertEqual([m["name"] for m in models], ["alpha", "beta", "later"])

    def test_unknown_architecture(self):
        path = golden_model()
        if path is None:
            self.skipTest("no model in tests/data/golden")
        with open(path, "rb") as f:
            data = f.read()
        key = b"general.architecture"
        at = data.index(key) + len(key) + 4 + 8
        arch = data[at:at + int.from_bytes(data[at - 8:at], "little")]
        odd = b"x" + arch[1:]
        changed = self.write("odd.gguf", data[:at] + odd + data[at + len(odd):])
        self.fails(1, re.compile(r"'%s'.*(%s|supported)" % (odd.decode(), arch.decode())), "run", changed, "-p", "x")
        shown = self.ok_json("inspect", changed, "--json")
        self.assertFalse(shown["runs"])
        self.assertIn(odd.decode(), shown["runs_error"])
        self.assertIn("runs       no: ", self.ok("inspect", changed)[0].decode())

    def test_truncated(self):
        path = golden_model()
        if path is None:
            self.skipTest("no model in tests/data/golden")
        with open(path, "rb") as f:
            data = f.read()
        for size in (8, 24, 1000, len(data) // 2, len(data) - 1):
            cut = self.write("cut.gguf", data[:size])
            self.fails(1, re.compile(r"cut\.gguf"), "run", cut, "-p", "x")


def golden_model(pattern="llama_spm*.gguf"):
    found = sorted(glob.glob(os.path.join(GOLDEN, pattern))) or sorted(glob.glob(os.path.join(GOLDEN, "*.gguf")))
    return found[0] if found else None


class Tiny(Cli):
    GREEDY = ("--temperature", "0", "--max-tokens", "8")

    def setUp(self):
        super().setUp()
        self.model = golden_model()
        if self.model is None:
            self.skipTest("no model in tests/data/golden")

    def test_text_alone_on_stdout(self):
        out, err = self.ok("run", self.model, "-p", "Hello", *self.GREEDY)
        for word in ("finish", "load", "first", "prefill", "decode", "memory", "kv", "total", "seed"):
            self.assertRegex(err, r"(?m)(^| )%s " % word)
        shown = self.ok_json("run", self.model, "-p", "Hello", "--json", *self.GREEDY)
        self.assertEqual(shown["text"], out.decode("utf-8", "replace"))
        quiet, err = self.ok("run", self.model, "-p", "Hello", "--quiet", *self.GREEDY)
        self.assertEqual((quiet, err), (out, ""))

    def test_json(self):
        shown = self.ok_json("run", self.model, "-p", "Hello", "--json", *self.GREEDY)
        self.assertEqual(set(shown), set("text ids finish stop n_prompt n_generated seed timings tok_s memory model isa n_thread"
                                         " n_ctx".split()))
        self.assertEqual(len(shown["ids"]), shown["n_generated"])
        self.assertEqual(shown["finish"], "length")
        self.assertIsNone(shown["stop"])
        self.assertEqual(shown["n_generated"], 8)
        self.assertEqual(set(shown["timings"]), {"load_ms", "first_ms", "prefill_ms", "decode_ms"})
        self.assertEqual(set(shown["tok_s"]), {"prefill", "decode"})
        memory = shown["memory"]
        self.assertEqual(sum(a["now_bytes"] for a in memory["accounts"].values()), memory["total_bytes"])
        self.assertGreater(memory["accounts"]["kv"]["peak_bytes"], 0)
        prompt = self.ok_json("tokenize", "Hello", "--model", self.model, "--json")
        self.assertEqual(prompt["n_token"], shown["n_prompt"])

    def test_prompt_comes_from_anywhere(self):
        text = "two lines\nand no more"
        path = os.path.join(self.home, "prompt")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        want = self.ok_json("run", self.model, "-p", text, "--json", *self.GREEDY)["ids"]
        self.assertEqual(self.ok_json("run", self.model, "-p", "-", "--json", *self.GREEDY, stdin=text.encode())["ids"], want)
        self.assertEqual(self.ok_json("run", self.model, "-f", path, "--json", *self.GREEDY)["ids"], want)
        self.assertEqual(self.ok_json("run", self.model, "-f", "-", "--json", *self.GREEDY, stdin=text.encode())["ids"], want)
        self.fails(1, "%s/none: No such file or directory" % self.home, "run", self.model, "-f", self.home + "/none")

    def test_one_answer_however_it_is_made(self):
        text = "the same text in each way"
        want = self.ok_json("run", self.model, "-p", text, "--json", *self.GREEDY)
        for more in (("--threads", "1"), ("--threads", "3"), ("--threads", "auto"), ("--store", "direct"), ("--batch", "1"),
                     ("--ctx", "100"), ("--seed", "9"), ("--top-k", "0"), ("--mem-limit", "1GiB")):
            self.assertEqual(self.ok_json("run", self.model, "-p", text, "--json", *self.GREEDY, *more)["ids"], want["ids"], more)

    def test_seed(self):
        def ids(*more):
            shown = self.ok_json("run", self.model, "-p", "Hello", "--json", "--max-tokens", "24", "--temperature", "1.5",
                                 "--top-k", "0", "--top-p", "1", "--min-p", "0", *more)
            return shown["ids"], shown["seed"]
        first, seed = ids()
        self.assertEqual(ids("--seed", str(seed))[0], first)
        self.assertEqual(ids("--seed", "18446744073709551615")[1], 18446744073709551615)
        self.assertGreater(len({tuple(ids("--seed", str(s))[0]) for s in range(4)}), 1)

    def test_stop(self):
        whole = self.ok_json("run", self.model, "-p", "Hello", "--json", "--temperature", "0", "--max-tokens", "16")["text"]
        plain = [c for c in whole[2:] if c != "\ufffd" and not c.isspace()]
        self.assertTrue(plain, whole)
        stop = plain[0]
        shown = self.ok_json("run", self.model, "-p", "Hello", "--json", "--temperature", "0", "--max-tokens", "16",
                             "--stop", "\x01never", "--stop", stop)
        self.assertEqual(shown["text"], whole[:whole.index(stop)])
        self.assertEqual((shown["finish"], shown["stop"]), ("stop", stop))

    def test_prompt_longer_than_the_context(self):
        text = "word " * 300
        n = self.ok_json("tokenize", text, "--model", self.model, "--json")["n_token"]
        self.fails(1, re.compile(r"\b%d\b.*\b64\b|\b64\b.*\b%d\b" % (n, n)), "run", self.model, "-p", text, "--ctx", "64")

    def test_context_is_full(self):
        n = self.ok_json("tokenize", "Hello", "--model", self.model, "--json")["n_token"]
        shown = self.ok_json("run", self.model, "-p", "Hello", "--json", "--temperature", "0", "--ctx", "24")
        self.assertIn(shown["finish"], ("length", "eog"))
        if shown["finish"] == "length":
            self.assertGreaterEqual(n + shown["n_generated"], 24)
            err = self.ok("run", self.model, "-p", "Hello", "--temperature", "0", "--ctx", "24")[1]
            self.assertIn("finish    length (the context is full)", err)

    def test_memory_limit(self):
        self.fails(1, re.compile(r"limit of 65536 bytes.*; raise --mem-limit, or lower --ctx for a smaller KV cache$"),
                   "run", self.model, "-p", "x", "--mem-limit", "64K")

    def test_bad_kv_type(self):
        self.fails(2, re.compile(r"run: .*'f99'"), "run", self.model, "-p", "x", "--kv-type", "f99")

    def test_no_chat_template(self):
        shown = self.ok_json("inspect", self.model, "--json")
        if shown["model"]["chat"] is not None:
            self.skipTest("this model has a template")
        self.fails(1, re.compile(r"template"), "run", self.model, "-p", "x", "--chat")

    def test_inspect(self):
        shown = self.ok_json("inspect", self.model, "--json")
        self.assertEqual(set(shown), set(
            "path format version n_file size_bytes alignment n_param tensor_bytes n_meta n_tensor model model_error runs"
            " runs_error load session types metadata tensors".split()))
        self.assertEqual(shown["format"], "GGUF")
        self.assertTrue(shown["runs"], shown["runs_error"])
        self.assertEqual(shown["size_bytes"], os.path.getsize(self.model))
        self.assertEqual(len(shown["tensors"]), shown["n_tensor"])
        self.assertEqual(len(shown["metadata"]), shown["n_meta"])
        self.assertEqual(sum(t["size_bytes"] for t in shown["tensors"]), shown["tensor_bytes"])
        self.assertEqual(sum(t["size_bytes"] for t in shown["types"]), shown["tensor_bytes"])
        by_key = {m["key"]: m for m in shown["metadata"]}
        self.assertEqual(by_key["general.architecture"]["value"], shown["model"]["arch"])
        tokens = by_key["tokenizer.ggml.tokens"]
        self.assertNotIn("value", tokens)
        self.assertEqual(tokens["n_item"], shown["model"]["n_vocab"])
        full = self.ok_json("inspect", self.model, "--full", "--json")
        tokens = {m["key"]: m for m in full["metadata"]}["tokenizer.ggml.tokens"]
        self.assertEqual(len(tokens["value"]), tokens["n_item"])
        self.assertTrue(all(isinstance(t, str) for t in tokens["value"]))
        scores = {m["key"]: m for m in full["metadata"]}.get("tokenizer.ggml.scores")
        if scores is not None:
            self.assertTrue(all(isinstance(s, (int, float)) for s in scores["value"]))
        brief = self.ok("inspect", self.model)[0].decode()
        long = self.ok("inspect", self.model, "--full")[0].decode()
        self.assertNotIn(shown["tensors"][0]["name"] + " ", brief)
        for tensor in shown["tensors"]:
            self.assertIn("  %s " % tensor["name"], long)
        # One line an entry, whatever the values hold.
        self.assertEqual(len(brief.split("metadata\n")[1].strip("\n").split("\n")), shown["n_meta"])
        self.assertEqual(self.ok_json("inspect", self.model, "--json", "--store", "direct")["tensors"], shown["tensors"])

    def test_tokenize(self):
        text = "Hello world, \u00e9\u4e16 \U0001f600\n"
        shown = self.ok_json("tokenize", text, "--model", self.model, "--json", "--no-bos")
        self.assertEqual([t["id"] for t in shown["tokens"]], shown["ids"])
        self.assertEqual(len(shown["ids"]), shown["n_token"])
        joined = bytes.fromhex("".join(t["hex"] for t in shown["tokens"])).decode().replace("\u2581", " ")
        self.assertEqual(joined.lstrip(" "), text)
        line = self.ok("tokenize", text, "--model", self.model, "--ids", "--no-bos")[0].decode()
        self.assertEqual(line, " ".join(str(i) for i in shown["ids"]) + "\n")
        with_bos = self.ok_json("tokenize", text, "--model", self.model, "--json")["ids"]
        self.assertEqual(with_bos[len(with_bos) - len(shown["ids"]):], shown["ids"])
        self.assertEqual(len(with_bos), len(shown["ids"]) + 1)
        table = self.ok("tokenize", text, "--model", self.model)[0].decode()
        self.assertEqual(len(table.strip("\n").split("\n")), len(with_bos) + 1)
        self.assertEqual(self.ok("tokenize", "", "--model", self.model, "--ids", "--no-bos")[0], b"\n")
        self.assertEqual(self.ok("tokenize", "--model", self.model, "--ids", "--", "-5")[0],
                         self.ok("tokenize", "-", "--model", self.model, "--ids", stdin=b"-5")[0])

    def test_tokenize_takes_stdin_as_it_is(self):
        def ids(data):
            return self.ok("tokenize", "-", "--model", self.model, "--ids", "--no-bos", stdin=data)[0]
        self.assertEqual(ids(b"Hello"), self.ok("tokenize", "Hello", "--model", self.model, "--ids", "--no-bos")[0])
        self.assertNotEqual(ids(b"Hello\n"), ids(b"Hello"))
        self.assertNotEqual(ids(b"Hello\r\n"), ids(b"Hello\n"))
        self.assertNotEqual(ids(b"a\0b"), ids(b"a"))
        self.assertEqual(ids(b""), b"\n")
        shown = self.ok_json("tokenize", "-", "--model", self.model, "--json", "--no-bos", stdin=b"\xff\x80ok\x1b")
        self.assertTrue(shown["ids"])

    def start(self, *args, **more):
        return subprocess.Popen([SLUICE, "run", self.model, "-p", "Hello", "--temperature", "0", "--ctx", "200000"] + list(args),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.env, **more)

    def test_interrupt(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            child = self.start()
            self.assertTrue(child.stdout.read(1))
            child.send_signal(number)
            out, err = child.communicate(timeout=TIMEOUT_S)
            self.assertEqual(child.returncode, code, err)
            self.assertRegex(err.decode(), r"(?m)^finish    cancelled, seed \d+")
            self.assertRegex(err.decode(), r"(?m)^decode .* tok/s$")

    def test_interrupt_json(self):
        child = self.start("--json", preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
        time.sleep(1.0)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=TIMEOUT_S)
        self.assertEqual(child.returncode, 130, err)
        if out:  # nothing comes out when the signal came before the first pass
            shown = json.loads(out)
            self.assertEqual(shown["finish"], "cancelled")
            self.assertEqual(len(shown["ids"]), shown["n_generated"])

    def test_reader_goes_away(self):
        child = self.start("--quiet")
        self.assertTrue(child.stdout.read(1))
        child.stdout.close()
        err = child.stderr.read()
        child.stderr.close()
        self.assertEqual(child.wait(TIMEOUT_S), 1)
        self.assertEqual(err, b"")

    def test_full_disk(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([SLUICE, "run", self.model, "-p", "Hello", "--quiet", *self.GREEDY], stdout=full,
                                  stderr=subprocess.PIPE, env=self.env, timeout=TIMEOUT_S)
        self.assertEqual(done.stderr.decode(), "sluice: the output could not be written: No space left on device\n")
        self.assertEqual(done.returncode, 1)

    def test_terminal_is_kept_safe(self):
        odd = os.path.join(self.home, "a\x1b]0;x\x07.gguf")
        shutil.copy(self.model, odd)
        code, seen = self.on_terminal("inspect", odd)
        self.assertEqual(code, 0, seen)
        self.assertNotIn(b"\x1b", seen)
        self.assertNotIn(b"\x07", seen)
        self.assertIn("a\ufffd]0;x\ufffd.gguf".encode(), seen)
        # Into a file or a pipe the bytes go as they are.
        self.assertIn(b"\x1b]0;x\x07", self.ok("inspect", odd)[0])

    def test_terminal_line_is_ended(self):
        code, seen = self.on_terminal("run", self.model, "-p", "Hello", "--quiet", *self.GREEDY)
        self.assertEqual(code, 0, seen)
        self.assertTrue(seen.endswith(b"\r\n"), seen)
        self.assertFalse(any(b < 0x20 and b not in b"\r\n\t" for b in seen), seen)


class Model(Cli):
    """The default model, by its name."""

    def setUp(self):
        super().setUp()
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.environ.get("HOME", ""), ".cache")
        folder = os.environ.get("SLUICE_MODELS") or os.path.join(cache, "sluice", "models")
        if not glob.glob(os.path.join(folder, "smollm2", "*.gguf")):
            self.skipTest("the model smollm2 is not in %s; tools/fetch-models.sh fetches it" % folder)
        self.env["SLUICE_MODELS"] = folder

    def test_chat(self):
        shown = self.ok_json("run", "smollm2", "--chat", "-p", "What is the capital of France?", "--temperature", "0", "--json",
                             "--max-tokens", "40")
        self.assertIn("Paris", shown["text"])
        self.assertEqual(shown["model"]["arch"], "llama")
        out, err = self.ok("run", "smollm2", "--chat", "-p", "What is the capital of France?", "--temperature", "0",
                           "--max-tokens", "40")
        self.assertEqual(out.decode(), shown["text"])
        self.assertIn("tok/s", err)

    def test_system_message_counts(self):
        def n(*more):
            return self.ok_json("run", "smollm2", "--chat", "-p", "Hi", "--max-tokens", "1", "--json", *more)["n_prompt"]
        # Without one this model's template puts a sentence of its own there.
        self.assertEqual(n("--system", "Hello " * 60) - n("--system", "Hello " * 30), 30)
        self.assertGreater(n("--system", "Hello " * 60), n())

    def test_inspect(self):
        shown = self.ok_json("inspect", "smollm2", "--json")
        self.assertEqual((shown["model"]["arch"], shown["model"]["chat"], shown["model"]["n_layer"]), ("llama", "chatml", 30))
        self.assertTrue(shown["runs"])
        self.assertEqual([m["name"] for m in self.ok_json("about", "--json")["models"] if m["name"] == "smollm2"], ["smollm2"])

    def test_tokenize(self):
        self.assertEqual(self.ok("tokenize", "Hello world", "--model", "smollm2", "--ids")[0], b"19556 905\n")


GROUPS = {"help": Help, "usage": Usage, "output": Output, "files": Files, "tiny": Tiny, "model": Model}


def main():
    global SLUICE
    SLUICE = os.path.abspath(sys.argv[1])
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(GROUPS[sys.argv[2]])
    result = unittest.TextTestRunner(verbosity=1, stream=sys.stdout).run(suite)
    for case, reason in result.skipped:
        print("SKIP: %s: %s" % (case.id().split(".")[-1], reason))
    if not result.wasSuccessful():
        return 1
    return 77 if len(result.skipped) == result.testsRun else 0


if __name__ == "__main__":
    sys.exit(main())
