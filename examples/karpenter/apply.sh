#!/bin/sh
# Gives Karpenter the own prices of a region, and removes the objects of machines that have none any more.
# The argument names the term of on-demand capacity, e.g. savings_plan_1y; on_demand by default.
set -eu

: "${FLEETBOOK_URL:?the address of Fleetbook}" "${FLEETBOOK_TOKEN:?a token with the scope machines:read}"
: "${REGION:?the region of the cluster, e.g. eu-central-1}"
provider=${PROVIDER:-aws}
file=$(mktemp)
trap 'rm -f "$file"' EXIT

apply() { # capacity type, term
  curl --fail-with-body --silent --show-error --compressed --retry 3 --output "$file" \
    --header "Authorization: Bearer $FLEETBOOK_TOKEN" \
    "$FLEETBOOK_URL/v1/exports/karpenter.yaml?provider=$provider&region=$REGION&term=$2" || { cat "$file" >&2; return 1; }
  selector="app.kubernetes.io/managed-by=fleetbook,app.kubernetes.io/instance=$REGION-$1"
  if grep -q '^kind: NodeOverlay$' "$file"; then
    kubectl apply --filename "$file" --prune --selector "$selector" --prune-allowlist karpenter.sh/v1alpha1/NodeOverlay
  else
    kubectl delete nodeoverlays.karpenter.sh --selector "$selector" --ignore-not-found
  fi
}

apply on-demand "${1:-on_demand}"
apply spot spot
