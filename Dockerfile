# storestream, static, as a user without rights. A read-only root will do, with a volume at /var/tmp for sweep.scratch.
# docker-compose.yml builds on a base with busybox, for its health checks: elsewhere, probe /healthz and /readyz over HTTP.
# The target storefake is the service to try it on.
ARG BASE=gcr.io/distroless/static-debian12:nonroot

FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG VERSION=unknown
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.release=${VERSION}" -o /out/ ./cmd/storestream ./cmd/storefake

FROM ${BASE} AS storefake
COPY --from=build /out/storefake /usr/local/bin/
USER 65532:65532
EXPOSE 8090
ENTRYPOINT ["/usr/local/bin/storefake"]

FROM ${BASE} AS storestream
COPY --from=build /out/storestream /usr/local/bin/
# Whatever the umask under which they were checked out.
COPY --chown=65532:65532 LICENSE NOTICE /usr/share/doc/storestream/
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["/usr/local/bin/storestream"]
CMD ["run"]
