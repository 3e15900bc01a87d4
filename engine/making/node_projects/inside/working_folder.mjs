// A working folder that an app may write to: its project's folders, with a link to each of the files. Written by Tool Agent.
//
// It is kept in the tool's home over restarts: what the app writes there stays. See working_folder.py, which does it for Python.
import { copyFileSync, lstatSync, mkdirSync, readdirSync, readlinkSync, symlinkSync, unlinkSync, existsSync } from "node:fs";
import { extname, join } from "node:path";

const WRITTEN = new Set([".db", ".sqlite", ".sqlite3", ".db3", ".log"]);

export function laidOut(project) {
  const home = join(process.env.HOME || "/tmp", "work");
  copied(project, home);
  forgotten(home);
  return home;
}

function copied(from, to) {
  mkdirSync(to, { recursive: true });
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const source = join(from, entry.name);
    const target = join(to, entry.name);
    if (entry.isDirectory()) copied(source, target);
    else if (entry.isFile()) linked(source, target);
  }
}

function linked(source, target) {
  const there = lstatSync(target, { throwIfNoEntry: false });
  if (WRITTEN.has(extname(source).toLowerCase())) {
    if (!there) copyFileSync(source, target);
    return;
  }
  if (there && !there.isSymbolicLink()) return; // the app has written its own
  if (there) {
    if (readlinkSync(target) === source) return;
    unlinkSync(target);
  }
  symlinkSync(source, target);
}

// Links of files that an older version had.
function forgotten(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) forgotten(path);
    else if (entry.isSymbolicLink() && !existsSync(path)) unlinkSync(path);
  }
}
