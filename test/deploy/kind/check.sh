#!/usr/bin/env bash
# Calls every operation of the release `fleetbook` through its Service: check.sh <namespace> <token>
set -euo pipefail
cd "$(dirname "$0")/../../.."
namespace=$1
token=$2
kubectl -n "$namespace" port-forward service/fleetbook 3000:80 >/dev/null &
forward=$!
trap 'kill "$forward"' EXIT
# Workers write the files of the catalogue after the first publication.
for _ in $(seq 60); do
  if PATH="$PWD/node_modules/.bin:$PATH" node test/deploy/programs/check-api.ts http://127.0.0.1:3000 "$token"; then exit 0; fi
  sleep 2
done
exit 1
