#!/usr/bin/env bash
# Builds the page anew and fails if crates/report/assets/page.html is not what this source gives.
set -euo pipefail
cd "$(dirname "$0")"
[ -d node_modules ] || npm ci --no-audit --no-fund --silent
fresh=$(mktemp --suffix .html)
trap 'rm -f "$fresh"' EXIT
FULLPIPE_PAGE="$fresh" npm run --silent build >&2
if ! cmp -s "$fresh" ../crates/report/assets/page.html; then
  echo "crates/report/assets/page.html is not what web/ gives: run (cd web && npm run build)" >&2
  exit 1
fi
echo "crates/report/assets/page.html is current"
