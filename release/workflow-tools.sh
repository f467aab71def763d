#!/usr/bin/env bash
# Installs the tools of `node release/check-workflows.ts` on a runner of GitHub, which already has shellcheck.
set -euo pipefail
go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
pipx install zizmor==1.32.0
go_path=$(go env GOPATH)
echo "$go_path/bin" >> "$GITHUB_PATH"
