# The image has Node, and PostgreSQL is a separate server. So optional dependencies (the embedded PostgreSQL) are left out,
# and install scripts do not run.
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
COPY docs/upgrades docs/upgrades
COPY src src
COPY workers workers
COPY packages packages
RUN ./node_modules/.bin/rolldown -c && node packages/console/build.mjs --strict && node src/http/reference/build.mjs --strict

FROM ${NODE_IMAGE} AS dependencies
WORKDIR /app
ARG NPM_CONFIG_REGISTRY
ARG EXTRA_CA
COPY package.json package-lock.json .npmrc ./
RUN if [ -n "$EXTRA_CA" ]; then printf '%s\n' "$EXTRA_CA" > /tmp/extra-ca.pem && export NODE_EXTRA_CA_CERTS=/tmp/extra-ca.pem; fi \
 && npm ci --ignore-scripts --omit=dev --omit=optional \
 && rm -rf node_modules/.bin node_modules/.package-lock.json

FROM ${NODE_IMAGE}
ENV NODE_ENV=production
WORKDIR /app
COPY --from=dependencies /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY drizzle drizzle
COPY package.json LICENSE ./
USER node
# Other containers and the published port need this address. The operators' pages stay on loopback unless OPS_HOST is set.
ENV HOST=0.0.0.0
EXPOSE 3000
ENTRYPOINT ["node", "dist/src/cli.js"]
CMD ["serve"]
