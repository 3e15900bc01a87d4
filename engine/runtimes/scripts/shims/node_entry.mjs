// Calls one exported function of a script: `node node_entry.mjs SCRIPT FUNCTION`, parameters as JSON on stdin, its result as JSON on stdout.
// Runs inside the sandbox, on Node or Bun. What the function logs goes to stderr.
import { readFileSync, writeSync } from "node:fs";
import { basename } from "node:path";
import { Console } from "node:console";
import { pathToFileURL } from "node:url";

globalThis.console = new Console(process.stderr, process.stderr);
process.stdout.write = process.stderr.write.bind(process.stderr);
const [script, name] = process.argv.slice(2);
const params = JSON.parse(readFileSync(0, "utf8"));
process.argv.splice(1, process.argv.length - 1, script);
const loaded = await import(pathToFileURL(script).href);

// A CommonJS module is its `default`.
const find = (from) => name.split(".").reduce((owner, part) => owner?.[part], from);
const found = find(loaded) ?? find(loaded.default);
if (typeof found !== "function") {
  process.stderr.write(`There is no function ${JSON.stringify(name)} exported by ${basename(script)}.\n`);
  process.exit(1);
}
const result = await found(params);
const text = Buffer.from(JSON.stringify(result === undefined ? null : result) ?? "null");
for (let written = 0; written < text.length; ) written += writeSync(1, text, written);
