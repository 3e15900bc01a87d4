#!/bin/sh
# Does with npm what a build script asks of pnpm or yarn, by whose name it is called: neither is here, and all is installed already.
# What is not certain is refused, so that a build never ends well without having been done.
own=${0##*/}
newline='
'
asked="$own $*"
here="$PWD $asked"
npm() { exec "${npm_node_execpath:-node}" "$npm_execpath" "$@"; }
refuse() {
  echo "$own error: $1. npm does here what the build asks of $own: $asked" >&2
  exit 2
}

# A script that calls itself would do so for ever.
case $newline$TOOL_AGENT_AS_NPM$newline in
*"$newline$here$newline"*) refuse "the script calls itself" ;;
esac
TOOL_AGENT_AS_NPM=$TOOL_AGENT_AS_NPM$newline$here
TOOL_AGENT_AS_NPM_DEPTH=$((${TOOL_AGENT_AS_NPM_DEPTH:-0} + 1))
export TOOL_AGENT_AS_NPM TOOL_AGENT_AS_NPM_DEPTH
[ "$TOOL_AGENT_AS_NPM_DEPTH" -le 12 ] || refuse "scripts call each other too often"

is_script() {
  node -e 'process.exit(Object.hasOwn(require(process.cwd() + "/package.json").scripts ?? {}, process.argv[1]) ? 0 : 1)' -- "$1" 2>/dev/null
}
is_script_of_any() {
  (npm pkg get scripts --workspaces) |
    node -e 'const all = Object.values(JSON.parse(require("fs").readFileSync(0, "utf8")));
      process.exit(all.some((one) => Object.hasOwn(one, process.argv[1])) ? 0 : 1)' -- "$1" 2>/dev/null
}
# The names of packages that are not installed for the project in this folder.
missing() {
  node -e 'const fs = require("fs"), path = require("path"), { dependencies, devDependencies } = require(process.cwd() + "/package.json");
    const is = (name, at) => fs.existsSync(path.join(at, "node_modules", name)) || (path.dirname(at) !== at && is(name, path.dirname(at)));
    console.log(Object.keys({ ...dependencies, ...devDependencies }).filter((name) => !is(name, process.cwd())).join(" "));'
}
# The program of this name that a package has installed.
program() {
  at=$PWD
  case $1 in '' | */*) return 1 ;; esac
  while :; do
    [ -x "$at/node_modules/.bin/$1" ] && echo "$at/node_modules/.bin/$1" && return
    [ -n "$at" ] || return 1
    at=${at%/*}
  done
}
enter() {
  [ -d "$1" ] || refuse "there is no folder '$1'"
  cd -- "$1" || exit
}
select_package() {
  case $1 in
  '' | *...* | *[]*!^{}\\[]* | *"$newline"*) refuse "the filter '$1' is not understood" ;;
  esac
  some="$some--workspace=$1$newline"
}

all= some= is_recursive= present= command=
while [ $# -gt 0 ]; do
  case $1 in
  -r | --recursive) is_recursive=yes ;;
  -F | --filter) [ $# -gt 1 ] || refuse "$1 names nothing"; select_package "$2"; shift ;;
  --filter=* | -F=*) select_package "${1#*=}" ;;
  -C | --dir | --cwd) [ $# -gt 1 ] || refuse "$1 names nothing"; enter "$2"; shift ;;
  -C=* | --dir=* | --cwd=*) enter "${1#*=}" ;;
  --workspace-concurrency | --reporter | --loglevel) [ $# -gt 1 ] || refuse "$1 names nothing"; shift ;;
  --workspace-concurrency=* | --reporter=* | --loglevel=*) ;;
  -s | --silent | --stream | --parallel | --sequential | --aggregate-output | --color | --no-color | --non-interactive) ;;
  --frozen-lockfile | --no-frozen-lockfile | --immutable | --offline | --prefer-offline | --ignore-engines | --ignore-scripts) ;;
  --if-present) present=--if-present ;;
  -*) refuse "the option '$1' is not understood" ;;
  run | run-script) [ -z "$command" ] || break; command=run ;;
  workspace)
    [ -z "$command" ] && [ "$own" = yarn ] || break
    [ $# -gt 1 ] || refuse "no workspace is named"
    select_package "$2"
    shift
    ;;
  workspaces)
    [ -z "$command" ] && [ "$own" = yarn ] || break
    [ "${2-}" = run ] || refuse "'workspaces ${2-}' is not understood"
    all=--workspaces
    ;;
  *) break ;;
  esac
  shift
done

if [ -z "$command" ]; then
  case ${1-install} in
  install | i)
    [ $# -eq 0 ] || shift
    while [ $# -gt 0 ]; do
      case $1 in
      -C | --dir | --cwd) [ $# -gt 1 ] || refuse "$1 names nothing"; enter "$2"; shift ;;
      -C=* | --dir=* | --cwd=*) enter "${1#*=}" ;;
      --network-timeout | --network-concurrency | --reporter | --loglevel | --filter) shift ;;
      -*) ;;
      *) refuse "'$1' cannot be installed now" ;;
      esac
      [ $# -eq 0 ] || shift
    done
    [ -f package.json ] || refuse "there is no package.json"
    lacking=$(missing) || refuse "package.json cannot be read"
    [ -z "$lacking" ] || refuse "not installed, because the project does not name it itself: $lacking"
    exit 0
    ;;
  exec | x | node)
    [ -z "$all$some$is_recursive" ] || refuse "'$1' in several packages is not understood"
    [ "$1" = node ] || shift
    [ "${1-}" != -- ] || shift
    case ${1-} in '' | -*) refuse "it is not understood which program is meant" ;; esac
    found=$(program "$1") || found=$1
    shift
    exec "$found" "$@"
    ;;
  add | remove | rm | uninstall | update | upgrade | up | link | unlink | publish | pack | prune | rebuild | dlx | create | init | config | \
    deploy | import | audit | patch) refuse "'$1' is not understood" ;;
  esac
fi

[ $# -gt 0 ] || refuse "it is not said what to run"
script=$1
shift
if [ -n "$some" ]; then
  all=$some
elif [ -n "$is_recursive" ]; then
  all=--workspaces
  [ -n "$present" ] || is_script_of_any "$script" || refuse "no package has a script '$script'"
  present=--if-present
fi
# Names of packages and folders may have blanks, but no line ends.
IFS=$newline
set -f
# shellcheck disable=SC2086 # options
if [ -n "$all" ] || is_script "$script"; then npm run $all $present -- "$script" "$@"; fi
found=$(program "$script") || [ -n "$present" ] || refuse "there is no script and no installed program '$script'"
[ -n "$found" ] || exit 0
exec "$found" "$@"
