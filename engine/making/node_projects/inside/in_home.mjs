// Starts an MCP server in a working folder that it may write to, not in its project: `in_home.mjs FILE [ARGUMENT ...]`. Written by Tool Agent.
//
// No module that is preloaded (`--import`): its threads, its forks and the workers of its cluster would load it, too.
import Module from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { laidOut } from "./working_folder.mjs";

const HERE = dirname(fileURLToPath(import.meta.url));
const file = resolve(HERE, process.argv[2]);

process.chdir(laidOut(join(HERE, "package")));
// As its author starts it: it may look whether it is the main module.
process.argv.splice(1, 2, file);
Module.runMain(file);
