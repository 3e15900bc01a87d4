// What an app offers, as an OpenAPI document: its own, else one of its routes. Written by Tool Agent.
import http from "node:http";
import { HEALTH } from "./facade.mjs";
import { routesOf } from "./routes.mjs";

const PATHS = [
  "/openapi.json", "/swagger.json", "/api-docs.json", "/api-docs/swagger.json", "/api-docs", "/docs.json", "/docs-json", "/api-json", "/api/docs-json",
  "/swagger-json", "/api/openapi.json", "/api/swagger.json", "/api/api-docs", "/api/docs.json", "/api/v1/docs.json", "/documentation/json", "/docs/json", "/v1/openapi.json",
]; // prettier-ignore
const BODIES = ["post", "put", "patch"];
const ASK_MS = 3000;
const MOST = 16 * 1024 * 1024;
const captured = [];

// Documents that are handed to a page of Swagger UI are served nowhere by themselves.
export function watchDocuments(require) {
  wrapped(require, "swagger-ui-express", (ui) => {
    for (const name of ["setup", "generateHTML", "serveFiles"]) {
      const own = ui[name];
      if (typeof own === "function") ui[name] = (...args) => (captured.push(args[0]), own.apply(ui, args));
    }
    return ui;
  });
  wrapped(require, "swagger-jsdoc", (own) => {
    const noting = (...args) => {
      const made = own(...args);
      captured.push(made);
      return made;
    };
    return typeof own === "function" ? Object.assign(noting, own, { default: noting }) : own;
  });
}

function wrapped(require, name, change) {
  try {
    const exported = require(name);
    require.cache[require.resolve(name)].exports = change(exported);
  } catch {
    // The project does not have it.
  }
}

export async function documentOf(server) {
  const routes = routesOf(server);
  for (const one of captured) {
    const made = await Promise.resolve(one).catch(() => undefined);
    if (isDocument(made)) return placed(plain(made), routes);
  }
  for (const path of PATHS) {
    const said = await asked(server, path);
    if (isDocument(said)) return placed(said, routes);
  }
  return routes.length ? { ...ofRoutes(routes), "x-of-routes": true } : undefined;
}

function isDocument(value) {
  return typeof value === "object" && value !== null && (value.openapi || value.swagger) && Object.keys(value.paths ?? {}).length > 0;
}

function plain(value) {
  return JSON.parse(JSON.stringify(value));
}

// Its paths may be told from another address on: from the one with which most of them are routes.
function placed(document, routes) {
  const bases = ["", ...(Array.isArray(document.servers) ? document.servers : []).map((one) => pathOf(one?.url)), String(document.basePath ?? "")];
  const known = new Set(routes.map((route) => shape(route.path)));
  const paths = Object.keys(document.paths);
  const score = (base) => paths.filter((path) => known.has(shape(base + path))).length;
  const prefixes = [...new Set(bases.map((base) => base.replace(/\/+$/, "")))];
  const told = prefixes.length > 1 ? prefixes[1] : "";
  const base = known.size ? prefixes.reduce((best, one) => (score(one) > score(best) ? one : best)) : told;
  const { servers: _, basePath: __, host: ___, ...rest } = document;
  return { ...rest, paths: Object.fromEntries(paths.map((path) => [base + path, document.paths[path]])) };
}

function pathOf(url) {
  try {
    return decodeURIComponent(new URL(String(url), "http://localhost/").pathname);
  } catch {
    return "";
  }
}

function shape(path) {
  return path.replace(/\{[^{}]*\}/g, "{}").replace(/\/+$/, "").toLowerCase() || "/";
}

function ofRoutes(routes) {
  const paths = { [HEALTH]: { get: { responses: { 200: { description: "It serves." } } } } };
  for (const route of routes) {
    paths[route.path] ??= {};
    paths[route.path][route.method] ??= operation(route);
  }
  return { openapi: "3.1.0", info: { title: "app", version: "0" }, paths };
}

function operation(route) {
  const inPath = route.names.map((name) => ({ name, in: "path", required: true, schema: { type: "string", pattern: "^[^/]+$" } }));
  const inQuery = route.reads.query.map((name) => ({ name, in: "query", required: false, schema: { type: "string" } }));
  const responses = { 200: { description: "What the app answers: JSON, or the text of a page." } };
  const found = { summary: `${route.method.toUpperCase()} ${route.path}`, parameters: [...inPath, ...inQuery], responses };
  if (!BODIES.includes(route.method)) return found;
  const schema = { type: "object" };
  if (route.reads.body.length) schema.properties = Object.fromEntries(route.reads.body.map((name) => [name, {}]));
  return { ...found, requestBody: { required: false, content: { "application/json": { schema } } } };
}

function asked(server, path) {
  const { address, port } = server.address();
  return new Promise((resolve) => {
    const request = http.get({ host: address, port, path, headers: { accept: "application/json" } }, (response) => {
      const parts = [];
      let size = 0;
      response.on("data", (part) => {
        size += part.length;
        if (size > MOST) request.destroy();
        else parts.push(part);
      });
      response.on("close", () => resolve(undefined));
      response.on("end", () => resolve(response.statusCode === 200 ? parsed(Buffer.concat(parts).toString("utf8")) : undefined));
    });
    request.setTimeout(ASK_MS, () => request.destroy());
    request.on("error", () => resolve(undefined));
  });
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
