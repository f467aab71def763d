#!/usr/bin/env bash
# bench/push-history.sh <result>: adds a result of `npm run bench -- read --json` to the branch "benchmarks" and draws its chart.
# REMOTE is the address of the repository; on a runner of GitHub it follows from the environment.
set -euo pipefail
result=$(realpath "${1:?give the file of the result}")
remote=${REMOTE:-https://x-access-token:${GITHUB_TOKEN:?}@github.com/${GITHUB_REPOSITORY:?}.git}
cd "$(dirname "$0")/.."
commit=$(git rev-parse HEAD)

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if ! git clone --quiet --depth 1 --branch benchmarks "$remote" "$folder" 2> /dev/null; then
  # The first result begins the branch.
  git init --quiet --initial-branch benchmarks "$folder"
  git -C "$folder" remote add origin "$remote"
fi
node_modules/.bin/node bench/history.ts "$result" "$folder" "$commit"
git -C "$folder" add .
git -C "$folder" -c user.name=benchmarks -c user.email=benchmarks@users.noreply.github.com \
  commit --quiet --message "read: $commit"
git -C "$folder" push --quiet origin benchmarks
