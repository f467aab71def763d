# The image contains Node.js, the libraries that it loads, and Fleetbook: no shell and no package manager. PostgreSQL and Redis are
# other servers. It builds with BuildKit and with the classic builder, on amd64 and arm64. docs/install.md has the commands.
ARG NODE_IMAGE=node:26-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /app
# Another npm registry, if the public one is not reachable.
ARG NPM_CONFIG_REGISTRY
# PEM of an additional certificate authority for npm, e.g. of a proxy or mirror. It is not a secret, and is not part of the
# image.
ARG EXTRA_CA
COPY package.json package-lock.json .npmrc ./
RUN if [ -n "$EXTRA_CA" ]; then printf '%s\n' "$EXTRA_CA" > /tmp/extra-ca.pem && export NODE_EXTRA_CA_CERTS=/tmp/extra-ca.pem; fi \
 && npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json rolldown.config.ts ./
COPY src src
COPY workers workers
COPY packages packages
RUN ./node_modules/.bin/rolldown -c && node packages/console/build.mjs --strict && node src/http/reference/build.mjs --strict

# The packages that are not in the bundle. Install scripts do not run, and the embedded PostgreSQL is left out.
FROM ${NODE_IMAGE} AS dependencies
WORKDIR /app
ARG NPM_CONFIG_REGISTRY
ARG EXTRA_CA
COPY package.json package-lock.json .npmrc ./
COPY release/manifest.ts release/
RUN if [ -n "$EXTRA_CA" ]; then printf '%s\n' "$EXTRA_CA" > /tmp/extra-ca.pem && export NODE_EXTRA_CA_CERTS=/tmp/extra-ca.pem; fi \
 && node release/manifest.ts trim \
 && npm ci --ignore-scripts --omit=dev --omit=optional \
 && rm -rf node_modules/.bin node_modules/.package-lock.json node_modules/.package.json

FROM ${NODE_IMAGE} AS node
COPY deploy/image/collect-node.sh /
RUN sh /collect-node.sh /node

FROM scratch
COPY --from=node /node /
WORKDIR /app
COPY --from=dependencies /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY drizzle/*.sql drizzle/
COPY drizzle/meta/_journal.json drizzle/meta/
COPY --from=dependencies /app/package.json ./
COPY LICENSE deploy/image/healthcheck.mjs ./
# The user `node`, as a number: Kubernetes then knows that it is not root.
USER 1000:1000
# Other containers and the published port need HOST. The operators' pages stay on loopback unless OPS_HOST is set.
# `up` stores its tokens in FLEETBOOK_HOME; a read-only container has a tmpfs there.
ENV PATH=/usr/local/bin NODE_ENV=production HOST=0.0.0.0 FLEETBOOK_HOME=/tmp/fleetbook
EXPOSE 3000
HEALTHCHECK --interval=5s --timeout=5s --start-period=30s --retries=6 CMD ["node", "/app/healthcheck.mjs"]
ENTRYPOINT ["node", "/app/dist/src/cli.js"]
CMD ["serve"]
# The release states these values.
ARG VERSION=unreleased
ARG REVISION=unknown
ARG CREATED=unknown
ARG SOURCE=unknown
LABEL org.opencontainers.image.title="Fleetbook" \
      org.opencontainers.image.description="Reads machine types and prices from cloud providers, holds suspicious changes for a person, and serves the rest as a fast JSON API." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.vendor="Fleetbook" \
      org.opencontainers.image.source="${SOURCE}" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}"
