// Speaks on stdin and stdout for an MCP server that listens for HTTP only: `mcp_bridge.mjs FILE [ARGUMENT ...]`. Written by Tool Agent.
//
// The server runs in this process, on a port of its own. Messages go to and fro as they are, by the transports of the server's own SDK.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, resolve } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath, pathToFileURL } from "node:url";

import { watchServers } from "./listening.mjs";

const PATHS = ["/mcp", "/mcp/", "/", "/sse", "/api/mcp", "/messages"];
const SAID = /["'`](\/[\w/-]{0,100})["'`]/g;
const PROBE_MS = 10_000;
const BOTH = "application/json, text/event-stream";
const HELLO = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-03-26", capabilities: {}, clientInfo: { name: "tool-agent", version: "1" } },
};

const [, , file, ...rest] = process.argv;
const target = resolve(dirname(fileURLToPath(import.meta.url)), file);
const require = createRequire(target);
const say = process.stdout.write.bind(process.stdout);
// A client reads that.
process.stdout.write = process.stderr.write.bind(process.stderr);
process.argv = [process.argv[0], target, ...rest];

const listening = watchServers();
const begun = import(pathToFileURL(target));
begun.catch(ended);
try {
  await bridge(await listening);
} catch (error) {
  ended(error);
}

function ended(error) {
  process.stderr.write(`${error?.stack ?? error}\n`);
  process.exit(1);
}

async function bridge(server) {
  const { port } = server.address();
  const text = readFileSync(target, "utf8");
  const named = [...text.matchAll(SAID)].map(([, path]) => path).filter((path) => /mcp|sse/i.test(path));
  const paths = [...new Set([...named, ...PATHS])];
  const [kind, path] = await spoken(port, paths);
  process.stderr.write(`The MCP server listens on port ${port} and speaks ${kind} at ${path}.\n`);
  const transport = made(kind, new URL(`http://127.0.0.1:${port}${path}`));
  transport.onmessage = (message) => {
    if (message.result?.protocolVersion) transport.setProtocolVersion?.(message.result.protocolVersion);
    say(`${JSON.stringify(message)}\n`);
  };
  transport.onerror = (error) => process.stderr.write(`Not MCP: ${error.message}\n`);
  await transport.start();
  const lines = createInterface({ input: process.stdin });
  lines.on("close", () => process.exit(0));
  for await (const line of lines) {
    if (!line.trim()) continue;
    const message = JSON.parse(line);
    const sent = transport.send(message).catch((error) => refused(message, error));
    // A notification is there before what comes after it.
    if (message.id === undefined) await sent;
  }
}

// An answer that is none ends its own call, not those beside it.
function refused(message, error) {
  process.stderr.write(`${message.method ?? "An answer"} was not taken: ${error?.message ?? error}\n`);
  if (message.id === undefined || !message.method) return;
  const told = { code: -32603, message: `The server refused the request: ${error?.message ?? error}`.slice(0, 2000) };
  say(`${JSON.stringify({ jsonrpc: "2.0", id: message.id, error: told })}\n`);
}

function made(kind, url) {
  if (kind === "SSE") return new (require("@modelcontextprotocol/sdk/client/sse.js").SSEClientTransport)(url);
  return new (require("@modelcontextprotocol/sdk/client/streamableHttp.js").StreamableHTTPClientTransport)(url);
}

// Streamable HTTP goes before SSE, which is the older one.
async function spoken(port, paths) {
  for (const path of paths) {
    const told = await asked(port, "POST", path);
    if (told?.status === 200 && ["application/json", "text/event-stream"].includes(told.media)) return ["streamable HTTP", path];
  }
  for (const path of paths) {
    const told = await asked(port, "GET", path);
    if (told?.status === 200 && told.media === "text/event-stream") return ["SSE", path];
  }
  throw new Error(`No path of the MCP server speaks MCP (it listens on ${port}; ${paths.join(", ")} were tried).`);
}

// What was begun by asking is ended: the server is to have one client.
async function asked(port, method, path) {
  const url = `http://127.0.0.1:${port}${path}`;
  const body = method === "POST" ? JSON.stringify(HELLO) : undefined;
  const headers = { accept: body ? BOTH : "text/event-stream", ...(body ? { "content-type": "application/json" } : {}) };
  const over = new AbortController();
  const timer = setTimeout(() => over.abort(), PROBE_MS);
  try {
    const answer = await fetch(url, { method, headers, body, signal: over.signal });
    const told = { status: answer.status, media: (answer.headers.get("content-type") ?? "").split(";")[0].trim().toLowerCase() };
    const session = answer.headers.get("mcp-session-id");
    over.abort();
    if (session) await fetch(url, { method: "DELETE", headers: { "mcp-session-id": session } }).catch(() => undefined);
    return told;
  } catch {
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}
