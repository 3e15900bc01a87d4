// Serves the app of a Node.js project on a port of 127.0.0.1. Written by Tool Agent.
import { createRequire } from "node:module";
import Module from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { documentOf, watchDocuments } from "./documents.mjs";
import { facade } from "./facade.mjs";
import { listenOnOurs, watchServers } from "./listening.mjs";
import { tellWhatIsOutOfReach } from "./reaching.mjs";
import { watchMounts } from "./routes.mjs";
import { laidOut } from "./working_folder.mjs";

const PROJECT = join(dirname(dirname(fileURLToPath(import.meta.url))), "package");
const PATIENCE_MS = 1500;

export async function serve(start, port) {
  const file = join(PROJECT, start);
  const require = createRequire(file);
  const reach = tellWhatIsOutOfReach();
  const served = watchServers();
  watchMounts(optional(require, "express"));
  watchDocuments(require);
  process.chdir(laidOut(PROJECT));
  // As its author starts it: it may look whether it is the main module.
  process.argv = [process.argv[0], file];
  Module.runMain(file);
  const timer = setInterval(() => listenFor(require.cache[file]?.exports), PATIENCE_MS);
  const app = await served;
  clearInterval(timer);
  reach.serves();
  await listenOnOurs(facade(app, () => documentOf(app)), port);
}

function optional(require, name) {
  try {
    return require(name);
  } catch {
    return undefined;
  }
}

// A module that makes the app and leaves it to another one to serve it.
function listenFor(exported) {
  const app = [exported, exported?.default, exported?.app, exported?.server].find((one) => typeof one?.listen === "function");
  if (app && !listenFor.done) {
    listenFor.done = true;
    app.listen(0);
  }
}
