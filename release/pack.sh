#!/usr/bin/env bash
# release/pack.sh <folder>: writes what a release publishes: the npm packages, their components and the statements about
# vulnerabilities.
set -euo pipefail
folder=${1:?give the folder to write}
cd "$(dirname "$0")/.."
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)

for package in . packages/client packages/mcp; do
  (cd "$package" && npm pack --silent --pack-destination "$folder")
done
node release/sbom.ts "$folder/fleetbook.cdx.json"
cp .vex/fleetbook.openvex.json "$folder/"
(cd "$folder" && sha256sum -- *.tgz *.json > SHA256SUMS && cat SHA256SUMS)
