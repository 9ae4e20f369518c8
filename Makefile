# Every target is one plain command that works without make, too.

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

# The static binary.
ksnoop: FORCE
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o $@ ./cmd/ksnoop

# Everything, on five kernels where virtual machines can be had.
test:
	go vet ./...
	go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...
	go test -timeout 30m ./...

# ksnoop at work in a virtual machine.
demo:
	go run ./e2e/demo

clean:
	rm -f ksnoop

FORCE:
.PHONY: test demo clean FORCE
