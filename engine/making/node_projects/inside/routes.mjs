// The routes that an app of Express keeps, with the names that their handlers read. Written by Tool Agent.
const mounts = new WeakMap();
const METHODS = ["get", "post", "put", "patch", "delete"];
const MOST = 1000;
const DEEPEST = 10;
const LONGEST = 50_000;

// Where a router was put is said by no version of Express in the same words, and by the latest not at all.
export function watchMounts(express) {
  if (!express) return;
  const routers = express.Router?.prototype?.use ? express.Router.prototype : express.Router;
  for (const [owner, stackOf] of [
    [routers, (router) => router.stack],
    [express.application, (app) => stackOfApp(app)],
  ]) {
    const use = owner?.use;
    if (typeof use !== "function") continue;
    owner.use = function (...args) {
      const before = stackOf(this)?.length ?? 0;
      const done = use.apply(this, args);
      const path = typeof args[0] === "string" ? args[0] : Array.isArray(args[0]) && typeof args[0][0] === "string" ? args[0][0] : "/";
      const apps = args.flat(3).filter((one) => typeof one === "function" && typeof one.set === "function" && one.handle);
      for (const layer of (stackOf(this) ?? []).slice(before)) mounts.set(layer, { path, app: apps[0] });
      return done;
    };
  }
}

export function routesOf(server) {
  const found = [];
  for (const app of server.listeners("request")) walk(stackOfApp(app), "", found, 0);
  return found;
}

// Of the fourth version `router` is a getter that throws.
function stackOfApp(app) {
  if (app?._router?.stack) return app._router.stack;
  try {
    return app?.router?.stack ?? (Array.isArray(app?.stack) ? app.stack : undefined);
  } catch {
    return undefined;
  }
}

function walk(stack, prefix, found, depth) {
  if (!Array.isArray(stack) || depth > DEEPEST) return;
  for (const layer of stack) {
    if (found.length >= MOST) return;
    if (layer.route) {
      for (const path of [layer.route.path].flat()) taken(layer.route, joined(prefix, path), found);
      continue;
    }
    const mount = mounts.get(layer);
    const inner = stackOfApp(mount?.app) ?? (Array.isArray(layer.handle?.stack) ? layer.handle.stack : undefined);
    if (inner) walk(inner, joined(prefix, mount?.path ?? "/"), found, depth + 1);
  }
}

function taken(route, path, found) {
  const told = path === null ? null : templated(path);
  if (told === null) return;
  for (const method of METHODS) {
    if (!route.methods?.[method] && !route.methods?._all) continue;
    const handlers = (route.stack ?? []).filter((one) => !one.method || one.method === method).map((one) => one.handle);
    found.push({ method, ...told, handlers, reads: readsOf(handlers) });
  }
}

function joined(prefix, path) {
  if (prefix === null || typeof path !== "string") return null;
  const whole = `${prefix}/${path}`.replace(/\/+/g, "/");
  return whole.length > 1 ? whole.replace(/\/$/, "") : "/";
}

// `/a/:id(\\d+)` and `/a{/:id}` as `/a/{id}`; null for what is no plain path.
function templated(path) {
  const names = [];
  const plain = path
    .replace(/\{([^{}]*)\}/g, "$1")
    .replace(/:([A-Za-z_]\w*)(\((?:[^()\\]|\\.)*\))?\??/g, (_, name) => {
      names.push(name);
      return `{${name}}`;
    });
  return /[*()+?:\\]/.test(plain) ? null : { path: plain, names };
}

// `request.query.page`, `const { name, age = 3 } = req.body`: what is read otherwise is not known.
function readsOf(handlers) {
  const query = new Set();
  const body = new Set();
  for (const handler of handlers) {
    const text = Function.prototype.toString.call(handler).slice(0, LONGEST);
    for (const [, place, name] of text.matchAll(/\breq(?:uest)?\.(query|body)\??\.([A-Za-z_$][\w$]*)/g)) (place === "query" ? query : body).add(name);
    for (const [, names, place] of text.matchAll(/\{([^{}]{1,500})\}\s*=\s*(?:await\s+)?req(?:uest)?\.(query|body)\b/g)) {
      for (const part of names.split(",")) {
        const name = /^\s*([A-Za-z_$][\w$]*)/.exec(part)?.[1];
        if (name) (place === "query" ? query : body).add(name);
      }
    }
  }
  return { query: [...query], body: [...body] };
}
