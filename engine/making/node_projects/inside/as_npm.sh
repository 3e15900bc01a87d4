#!/bin/sh
# Does with npm what a build script asks of pnpm or yarn, by whose name it is called: neither is here, and all is installed already.
npm() { exec "${npm_node_execpath:-node}" "$npm_execpath" "$@"; }
is_script() { node -e 'process.exit(process.argv[1] in (require(process.cwd() + "/package.json").scripts ?? {}) ? 0 : 1)' "$1"; }

where=
while [ $# -gt 0 ]; do
  case $1 in
  -r | --recursive) where="$where --workspaces --if-present" ;;
  -F | --filter) where="$where --workspace=$2" && shift ;;
  --filter=*) where="$where --workspace=${1#*=}" ;;
  -C | --dir | --cwd) cd "$2" || exit && shift ;;
  -*) ;;
  *) break ;;
  esac
  shift
done

case ${1:-install} in
install | i) exit 0 ;;
run | run-script) shift ;;
exec | x) shift && exec "$@" ;;
workspace) where="--workspace=$2" && shift 2 && [ "$1" = run ] && shift ;;
esac
script=$1
[ $# -gt 0 ] && shift
# shellcheck disable=SC2086 # options
if [ -n "$where" ]; then npm run $where "$script" -- "$@"; fi
if is_script "$script"; then npm run "$script" -- "$@"; fi
exec "$script" "$@"
