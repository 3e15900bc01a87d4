// Stands before an app: says how it is and what it offers, and gives pages and redirects as JSON. Written by Tool Agent.
import http from "node:http";

export const DOCUMENT = "/.tool-agent/openapi.json";
export const HEALTH = "/-/health";
const MOST = 16 * 1024 * 1024;

export function facade(app, document) {
  const agent = new http.Agent({ keepAlive: true });
  const server = http.createServer((request, response) => {
    if (request.url === HEALTH) return answer(response, { status: "ok" });
    if (request.url === DOCUMENT) {
      const found = document().catch(() => undefined);
      return void found.then((one) => answer(response, one, one ? 200 : 404));
    }
    passed(app, agent, request, response);
  });
  // Whoever calls decides how long it waits.
  server.requestTimeout = 0;
  return server;
}

function passed(app, agent, request, response) {
  const { address, port } = app.address();
  // What is packed could not be read here.
  const { "accept-encoding": _, ...headers } = request.headers;
  const asked = http.request({ host: address, port, agent, method: request.method, path: request.url, headers });
  asked.on("response", (told) => answered(told, response));
  asked.on("error", (error) => (response.headersSent ? response.destroy() : answer(response, { error: String(error.message) }, 502)));
  response.on("close", () => asked.destroy());
  request.pipe(asked);
}

function answered(told, response) {
  const type = String(told.headers["content-type"] ?? "");
  const isRedirect = told.statusCode >= 300 && told.statusCode < 400 && told.headers.location !== undefined;
  const isFull = told.statusCode >= 200 && told.statusCode < 300 && told.statusCode !== 204;
  const isPage = isFull && isText(type) && !told.headers["content-encoding"];
  if (!isRedirect && !isPage) {
    response.writeHead(told.statusCode, told.headers);
    return void told.pipe(response);
  }
  if (isRedirect) {
    told.resume();
    return answer(response, { status: told.statusCode, location: told.headers.location });
  }
  const parts = [];
  let size = 0;
  told.on("data", (part) => {
    size += part.length;
    if (size <= MOST) parts.push(part);
  });
  told.on("end", () => {
    if (size > MOST) return answer(response, { error: `the page is larger than ${MOST} bytes` }, 502);
    const text = decoded(Buffer.concat(parts), type);
    sent(response, isJson(text) ? text : JSON.stringify(text));
  });
  told.on("error", () => response.destroy());
}

function isText(type) {
  const kind = type.split(";")[0].trim().toLowerCase();
  return (kind.startsWith("text/") && kind !== "text/event-stream") || kind === "application/xml" || kind.endsWith("+xml");
}

function decoded(body, type) {
  const charset = /charset=\s*["']?([^"';\s]+)/i.exec(type)?.[1] ?? "utf-8";
  try {
    return new TextDecoder(charset, { ignoreBOM: true }).decode(body);
  } catch {
    return body.toString("utf8");
  }
}

// An object or a list. Other texts may happen to be JSON: `12`, `true`.
function isJson(text) {
  if (!/^\s*[{[]/.test(text)) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function answer(response, value, status = 200) {
  sent(response, JSON.stringify(value ?? null), status);
}

function sent(response, json, status = 200) {
  const body = Buffer.from(json);
  response.writeHead(status, { "content-type": "application/json", "content-length": body.length });
  response.end(body);
}
