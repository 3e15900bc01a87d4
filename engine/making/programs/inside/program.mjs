// Runs one command of a program: parameters as JSON on stdin, what came of it as JSON on stdout. Written by Tool Agent.
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = dirname(fileURLToPath(import.meta.url));
const MOST = 4 * 1024 * 1024;
const MOST_FILES = 100;

export function run(name) {
  const command = JSON.parse(readFileSync(join(HERE, "commands.json"), "utf8"))[name];
  const params = JSON.parse(readFileSync(0, "utf8"));
  const outputs = process.env.TOOL_AGENT_OUTPUT_DIR;
  const folder = outputs || "/tmp";
  const given = new Set();
  for (const path of params.files || []) {
    copyFileSync(path, join(folder, basename(path)));
    given.add(basename(path));
  }
  const home = join(HERE, ".home");
  const environment = existsSync(home) ? { ...process.env, HOME: home } : process.env;
  const done = spawnSync(process.execPath, [join(HERE, command.target), ...words(command, params)], {
    cwd: folder,
    env: environment,
    input: params.stdin ?? "",
    maxBuffer: MOST,
  });
  const result = {
    exit_code: done.status ?? -1,
    stdout: text(done.stdout),
    stderr: text(done.stderr) + (done.status === null ? `\nended by ${done.signal ?? done.error?.code}` : ""),
  };
  if (done.error?.code === "ENOBUFS") result.truncated = ["stdout"];
  const output = json(result.stdout);
  if (output !== undefined) result.output = output;
  const files = outputs ? written(folder, folder, given, []) : [];
  if (files.length) result.files = files;
  process.stdout.write(JSON.stringify(result));
}

function words(command, params) {
  const found = [];
  for (const level of command.levels) {
    found.push(...level.words);
    for (const parameter of level.parameters) {
      const value = params[parameter.name];
      if (value !== undefined) found.push(...[value].flat().map(String));
    }
  }
  return found;
}

function text(buffer) {
  return (buffer ?? Buffer.alloc(0)).toString("utf8");
}

function json(said) {
  if (!/^\s*[{[]/.test(said)) return undefined;
  try {
    return JSON.parse(said);
  } catch {
    return undefined;
  }
}

function written(root, place, given, found) {
  for (const entry of readdirSync(place, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = join(place, entry.name);
    const name = relative(root, path);
    if (entry.isDirectory()) written(root, path, given, found);
    else if (entry.isFile() && !given.has(name) && found.length < MOST_FILES) found.push({ name, file: name });
  }
  return found;
}
