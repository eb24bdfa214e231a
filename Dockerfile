# storestream and storefake, static, as a user without rights. docker-compose.yml builds on a base with busybox, for its health checks:
# elsewhere, probe /healthz and /readyz over HTTP.
ARG BASE=gcr.io/distroless/static-debian12:nonroot

FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=unknown
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.release=${VERSION}" -o /out/ ./cmd/storestream ./cmd/storefake

FROM ${BASE}
COPY --from=build /out/ /usr/local/bin/
USER nonroot:nonroot
EXPOSE 8080
ENTRYPOINT ["/usr/local/bin/storestream"]
CMD ["run"]
