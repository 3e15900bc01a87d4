// Loaded before an MCP server: it begins in a working folder that it may write to, not in its project. Written by Tool Agent.
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { laidOut } from "./working_folder.mjs";

process.chdir(laidOut(join(dirname(fileURLToPath(import.meta.url)), "package")));
