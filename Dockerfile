# The controller alone: one program without dependencies, run by a pinned Node on a base without a shell.
# Both images can be pinned by digest: --build-arg BUILD_IMAGE=node:24.21.0-bookworm-slim@sha256:…
ARG BUILD_IMAGE=node:24.21.0-bookworm-slim
ARG BASE_IMAGE=gcr.io/distroless/cc-debian12:nonroot

FROM ${BUILD_IMAGE} AS build
WORKDIR /src
# The manifests first: while they stay as they are, so do the installed packages.
COPY package.json package-lock.json .npmrc ./
COPY packages/api/package.json packages/api/
COPY packages/cli/package.json packages/cli/
COPY packages/devcluster/package.json packages/devcluster/
COPY packages/engine/package.json packages/engine/
COPY packages/kube/package.json packages/kube/
COPY packages/operator/package.json packages/operator/
COPY packages/provider/package.json packages/provider/
COPY packages/provider-exoscale/package.json packages/provider-exoscale/
COPY packages/provider-kwok/package.json packages/provider-kwok/
COPY packages/runtime/package.json packages/runtime/
COPY packages/world/package.json packages/world/
COPY bench/package.json bench/
COPY conformance/package.json conformance/
RUN npm ci --no-audit --no-fund
COPY LICENSE ./
COPY build build
COPY packages packages
RUN node build/bundle.ts --outdir /out

FROM ${BASE_IMAGE}
COPY --from=build /usr/local/bin/node /usr/local/bin/node
COPY --from=build /out /app
ENV NODE_ENV=production
USER 65532:65532
EXPOSE 8080 8081
# Short-lived objects in 4 MiB instead of 16: a third less memory in a busy cluster, for the same processor time.
ENTRYPOINT ["/usr/local/bin/node", "--max-semi-space-size=4", "/app/tenon.mjs"]
CMD ["--help"]
