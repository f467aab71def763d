#!/usr/bin/env bash
# Builds the image for both architectures, pushes it, and signs it by its digest. IMAGE is its name without a tag, TAG the
# release's tag.
set -euo pipefail
image=${IMAGE:?IMAGE is not set, for example ghcr.io/owner/fleetbook}
version=${TAG:?TAG is not set, for example v1.2.3}
version=${version#v}
image=${image,,}
cd "$(dirname "$0")/.."

metadata=$(mktemp)
docker buildx build --platform linux/amd64,linux/arm64 --push \
  --provenance mode=max --sbom true \
  --tag "$image:$version" --tag "$image:latest" \
  --label "org.opencontainers.image.version=$version" \
  --metadata-file "$metadata" .
digest=$(jq --exit-status --raw-output '."containerimage.digest"' "$metadata")
rm "$metadata"

# The digest, because a tag could be moved between push and signature.
cosign sign --yes --recursive "$image@$digest"
echo "digest=$digest" >> "${GITHUB_OUTPUT:-/dev/stdout}"
