# syntax=docker/dockerfile:1
# One image for every role: `serve --role all|auth|mcp`, `migrate`, `check`, `doctor`. Needs BuildKit.
# Base images are named by release; pin them by digest where you build for production.
ARG NODE_IMAGE=node:22-bookworm-slim
ARG RUST_IMAGE=rust:1.95-bookworm
ARG RUNTIME_IMAGE=debian:bookworm-slim

# The console, which the binary embeds. Its files are the same for every platform.
FROM --platform=$BUILDPLATFORM ${NODE_IMAGE} AS web
WORKDIR /src/web
COPY web/package.json web/package-lock.json web/.npmrc ./
RUN --mount=type=cache,target=/root/.npm npm ci --no-audit --no-fund
COPY web/ ./
COPY docs ../docs
RUN npm run build

# The binary. SQL was checked against .sqlx: no database is needed here.
FROM ${RUST_IMAGE} AS build
WORKDIR /src
COPY . .
COPY --from=web /src/web/dist web/dist
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    scripts/release.sh --locked --bin portolan \
    && install -D target/release/portolan /out/portolan

FROM ${RUNTIME_IMAGE} AS runtime
# Certificates of the authorities that upstream APIs are checked against.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /out/portolan /usr/local/bin/portolan

# Inside a container the listeners are reached from outside it. Never publish the second one.
ENV PORTOLAN_LISTEN=0.0.0.0:8080 \
    PORTOLAN_ADMIN_LISTEN=0.0.0.0:9090 \
    PORTOLAN_LOG_FORMAT=json
EXPOSE 8080 9090

# Numeric, so that `runAsNonRoot` can be checked. Nothing is ever written: the root file system may be read-only.
USER 10001:10001
WORKDIR /

# `portolan` handles SIGTERM itself and starts no children: no init process is needed. Give it 40 s to stop.
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/portolan"]
CMD ["serve"]

# Readiness, asked with what the image has. Where PORTOLAN_ADMIN_LISTEN names another port, say so here too.
HEALTHCHECK --interval=5s --timeout=3s --start-period=30s --retries=3 \
    CMD ["/bin/bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/9090 && printf 'GET /readyz HTTP/1.0\\r\\n\\r\\n' >&3 && head -n 1 <&3 | grep -q ' 200 '"]
