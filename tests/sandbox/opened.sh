#!/usr/bin/env bash
# opened.sh UID[,GROUP] FOLDER... -- COMMAND...: runs it as that user, who is also in that group, in a mount namespace of its own
# (unshare --mount), where these folders can be reached although they lie in folders that are closed to others, as the home of root is.
set -euo pipefail
uid=${1%%,*}
groups=(--clear-groups)
[[ $1 == "$uid" ]] || groups=(--groups "${1#*,}")
shift
folders=()
while [[ $1 != -- ]]; do
  folders+=("$(readlink -f "$1")")
  shift
done
shift

closed() { # the first folder on the way that others cannot pass
  local part= word
  local -a words
  IFS=/ read -ra words <<<"${1#/}"
  for word in "${words[@]}"; do
    part+="/$word"
    [[ -e $part ]] || return 0
    (( 0$(stat -c %a "$part") & 1 )) || { echo "$part"; return 0; }
  done
}

mount -t tmpfs -o mode=755 none /mnt
for index in "${!folders[@]}"; do
  mkdir "/mnt/$index"
  mount --rbind "${folders[$index]}" "/mnt/$index"
done
for folder in "${folders[@]}"; do
  cover=$(closed "$folder")
  [[ -z $cover ]] || mount -t tmpfs -o mode=755 none "$cover"
done
umask 022
for index in "${!folders[@]}"; do
  if [[ ! -e ${folders[$index]} ]]; then
    mkdir -p "${folders[$index]}"
    mount --rbind "/mnt/$index" "${folders[$index]}"
  fi
done
if [[ $uid == 0 ]]; then exec "$@"; fi
exec setpriv --reuid "$uid" --regid "$uid" "${groups[@]}" -- "$@"
