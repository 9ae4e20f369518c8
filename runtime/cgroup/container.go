package cgroup

import (
	"strconv"
	"strings"
)

// Container is a container as its cgroup shows it.
type Container struct {
	Runtime string // docker, containerd, cri-o, podman, systemd, lxc, or another one as the cgroup names it
	ID      string // 64 hex digits, or "" where containers only have names
	Name    string // or "" if it is not known
}

// shortID is the length of an identifier as the runtimes show it.
const shortID = 12

// String returns the name, or the beginning of the identifier.
func (c Container) String() string {
	if c.Name != "" {
		return c.Name
	}
	return c.ID[:min(len(c.ID), shortID)]
}

// Parse returns the innermost container of a cgroup, by its path below the mount. ok is
// false if it is in none:
//
//	/system.slice/docker-ID.scope                                 docker
//	/docker/ID                                                    docker without systemd
//	/kubepods.slice/.../kubepods-podUID.slice/cri-containerd-ID.scope  containerd in Kubernetes
//	/kubepods/burstable/podUID/ID                                 the same without systemd
//	/kubepods.slice/.../crio-ID.scope                             CRI-O
//	/machine.slice/libpod-ID.scope/container                      podman
//	/system.slice/web.service/libpod-payload-ID                   podman in a service's cgroup
//	/machine.slice/machine-NAME.scope                             systemd-machined
//	/machine.slice/systemd-nspawn@NAME.service                    systemd-nspawn
//	/lxc.payload.NAME                                             LXC
func Parse(path string) (c Container, ok bool) {
	parts := strings.Split(path, "/")
	for i := len(parts) - 1; i >= 0; i-- {
		above := ""
		if i > 0 {
			above = parts[i-1]
		}
		if c, ok := parsePart(above, parts[i]); ok {
			return c, true
		}
	}
	return Container{}, false
}

// runtimes has the name of a runtime by what is before the identifier in the cgroup's
// name, where the two differ.
var runtimes = map[string]string{"cri-containerd": "containerd", "crio": "cri-o", "libpod": "podman", "libpod-payload": "podman"}

// parsePart returns the container that a part of a path is the cgroup of. above is the
// part before.
func parsePart(above, part string) (c Container, ok bool) {
	part, scope := strings.CutSuffix(part, ".scope")
	if name, ok := strings.CutPrefix(part, "machine-"); ok && scope {
		return Container{Runtime: "systemd", Name: unescapeUnit(name)}, true
	}
	if name, ok := strings.CutPrefix(part, "systemd-nspawn@"); ok {
		name, ok = strings.CutSuffix(name, ".service")
		return Container{Runtime: "systemd", Name: unescapeUnit(name)}, ok
	}
	if name, ok := strings.CutPrefix(part, "lxc.payload."); ok && name != "" {
		return Container{Runtime: "lxc", Name: name}, true
	}
	at := strings.LastIndexByte(part, '-')
	if id := part[at+1:]; isID(id) {
		runtime := above
		switch {
		case at > 0:
			runtime = part[:at]
		case above != "docker": // podUID, or a namespace of containerd
			runtime = "containerd"
		}
		if strings.HasSuffix(runtime, "conmon") {
			return Container{}, false // it watches a container, and is in none
		}
		if name := runtimes[runtime]; name != "" {
			runtime = name
		}
		return Container{Runtime: runtime, ID: id}, true
	}
	return Container{}, false
}

// isID reports whether a text is the identifier of a container.
func isID(text string) bool { return len(text) == 64 && strings.Trim(text, "0123456789abcdef") == "" }

// unescapeUnit decodes the escapes of systemd in the names of units: \x2d is a dash.
func unescapeUnit(name string) string {
	var text strings.Builder
	for {
		before, rest, ok := strings.Cut(name, `\x`)
		text.WriteString(before)
		if !ok {
			return text.String()
		}
		if n, err := strconv.ParseUint(rest[:min(2, len(rest))], 16, 8); err == nil && len(rest) >= 2 {
			text.WriteByte(byte(n))
			rest = rest[2:]
		} else {
			text.WriteString(`\x`)
		}
		name = rest
	}
}
