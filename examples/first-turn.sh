#!/usr/bin/env bash
# Times a newcomer's path: a fresh clone, an empty build cache, and the README's commands
# up to a finished local Turn, exactly as they stand there. The CPU time is what a busy
# machine does not change much; two free cores take half of it.
#
#   examples/first-turn.sh            modules that were downloaded before are used
#   MODULE_CACHE=empty examples/first-turn.sh   they are downloaded too
set -euo pipefail
repository=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
commands=$(awk '/^Without a cluster at all/ {found = 1} found && /^```/ {if (inside) exit; inside = 1; next} inside' "$repository/README.md")
[ -n "$commands" ] || { echo 'the README has no commands for a Turn without a cluster' >&2; exit 1; }
export GOCACHE=$dir/cache
[ "${MODULE_CACHE:-}" != empty ] || export GOMODCACHE=$dir/modules
echo "$(nproc) cores, load $(cut -d' ' -f1-3 /proc/loadavg), $(go version | cut -d' ' -f3), modules ${MODULE_CACHE:-warm}"
SECONDS=0
git clone -q "$repository" "$dir/source"
cd "$dir/source"
bash -euo pipefail -c "$commands" >"$dir/output" || { cat "$dir/output" >&2; exit 1; }
wall=$SECONDS
times >"$dir/times" # in this shell: another has not waited for the commands
cpu=$(awk -F'[ms ]' 'NR == 2 {print int($1 * 60 + $2 + $4 * 60 + $5)}' "$dir/times")
[ "${MODULE_CACHE:-}" != empty ] || echo "modules downloaded: $(du -sm "$GOMODCACHE/cache/download" | cut -f1) MB"
echo "from clone to a finished Turn: $wall s, $cpu s of CPU"
