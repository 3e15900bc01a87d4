"""The scripts that `toolagent new-tool` writes, one for each language."""

from collections.abc import Mapping
from dataclasses import dataclass

from toolagent.contracts.sources import ScriptLanguage

__all__ = ["TEMPLATES", "Template"]


@dataclass(frozen=True, slots=True)
class Template:
    """In `test`, `@TOOL_FILE@` stands for the name of the tool's file. `test_command` runs the test in the tool's folder."""

    script_name: str
    script: str
    test_name: str
    test: str
    test_command: str


_PYTHON = '''\
"""Reads its parameters as one JSON object on stdin, and writes its answer as one JSON value on stdout."""

import json
import sys


def answer(params: dict) -> dict:
    return {"length": len(params["text"])}


if __name__ == "__main__":
    # What goes to stderr is kept as the log of the call.
    json.dump(answer(json.load(sys.stdin)), sys.stdout)
'''

_PYTHON_TEST = '''\
"""Runs the script with each example of the tool's file."""

import json
import subprocess
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).parent
TOOL = json.loads((HERE / "@TOOL_FILE@").read_text("utf-8"))


class Examples(unittest.TestCase):
    def test_each_example_gives_what_it_expects(self) -> None:
        for example in TOOL["examples"]:
            with self.subTest(example["description"]):
                script = [sys.executable, str(HERE / TOOL["handler"]["scriptPath"])]
                ran = subprocess.run(script, input=json.dumps(example["input"]), capture_output=True, text=True, check=True)
                output = json.loads(ran.stdout)
                expected = example["expectedOutput"]
                self.assertEqual({key: output.get(key) for key in expected}, expected)


if __name__ == "__main__":
    unittest.main()
'''

_NODE = """\
// Reads its parameters as one JSON object on stdin, and writes its answer as one JSON value on stdout.
import { readFileSync } from "node:fs";

function answer(params) {
  return { length: [...params.text].length };
}

// What goes to stderr is kept as the log of the call.
process.stdout.write(JSON.stringify(answer(JSON.parse(readFileSync(0, "utf8")))));
"""

_NODE_TEST = """\
// Runs the script with each example of the tool's file.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import test from "node:test";

const tool = JSON.parse(readFileSync(new URL("@TOOL_FILE@", import.meta.url), "utf8"));
const script = new URL(tool.handler.scriptPath, import.meta.url).pathname;

for (const example of tool.examples) {
  test(example.description, () => {
    const output = JSON.parse(execFileSync(process.execPath, [script], { input: JSON.stringify(example.input) }));
    for (const [key, value] of Object.entries(example.expectedOutput)) assert.deepEqual(output[key], value);
  });
}
"""

_BUN = """\
// Reads its parameters as one JSON object on stdin, and writes its answer as one JSON value on stdout.
type Params = { text: string };

function answer(params: Params) {
  return { length: [...params.text].length };
}

// What goes to stderr is kept as the log of the call.
process.stdout.write(JSON.stringify(answer(await Bun.stdin.json())));
"""

_BUN_TEST = """\
// Runs the script with each example of the tool's file.
import { expect, test } from "bun:test";

const tool = await Bun.file(new URL("@TOOL_FILE@", import.meta.url)).json();
const script = new URL(tool.handler.scriptPath, import.meta.url).pathname;

for (const example of tool.examples) {
  test(example.description, async () => {
    const process_ = Bun.spawn([process.execPath, script], { stdin: new Blob([JSON.stringify(example.input)]), stdout: "pipe" });
    expect(await new Response(process_.stdout).json()).toMatchObject(example.expectedOutput);
  });
}
"""

TEMPLATES: Mapping[ScriptLanguage, Template] = {
    ScriptLanguage.PYTHON: Template("main.py", _PYTHON, "test_main.py", _PYTHON_TEST, "python test_main.py"),
    ScriptLanguage.NODEJS: Template("main.mjs", _NODE, "main.test.mjs", _NODE_TEST, "node --test"),
    ScriptLanguage.BUN: Template("main.ts", _BUN, "main.test.ts", _BUN_TEST, "bun test"),
}
