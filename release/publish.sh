#!/usr/bin/env bash
# release/publish.sh <folder> [arguments of npm publish]: publishes the packages of release/pack.sh with provenance.
set -euo pipefail
folder=${1:?give the folder of release/pack.sh}
shift
(cd "$folder" && sha256sum --check --quiet SHA256SUMS)
for package in "$folder"/*.tgz; do
  npm publish --provenance --access public "$@" "$package"
done
