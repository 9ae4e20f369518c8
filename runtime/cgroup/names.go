package cgroup

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/valyala/fastjson"
)

// nameOf returns the name of a container as the files of its runtime below a root have
// it, or "" if they cannot be read. Only root may read most of them.
func nameOf(root string, c Container) string {
	switch c.Runtime {
	case "docker": // {"Name": "/web", ...}
		config := readJSON(filepath.Join(root, "var/lib/docker/containers", c.ID, "config.v2.json"))
		return strings.TrimPrefix(string(config.GetStringBytes("Name")), "/")
	case "podman": // [{"id": "...", "names": ["db"], ...}, ...], in another file if made with --rm
		for _, file := range []string{"containers.json", "volatile-containers.json"} {
			for _, each := range readJSON(filepath.Join(root, "var/lib/containers/storage/overlay-containers", file)).GetArray() {
				if string(each.GetStringBytes("id")) == c.ID {
					return string(each.GetStringBytes("names", "0"))
				}
			}
		}
	case "containerd", "cri-o":
		return podName(filepath.Join(root, "var/log/containers"), c.ID)
	}
	return ""
}

// readJSON returns what a file has, or nil, which has no members, if it cannot be read.
func readJSON(file string) *fastjson.Value {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	v, err := fastjson.ParseBytes(text)
	if err != nil {
		return nil
	}
	return v
}

// podName returns the name of a container of Kubernetes, NAMESPACE/POD/CONTAINER, by the
// name of its log, POD_NAMESPACE_CONTAINER-ID.log.
func podName(logs, id string) string {
	files, err := os.ReadDir(logs)
	if err != nil {
		return ""
	}
	suffix := "-" + id + ".log"
	i := slices.IndexFunc(files, func(f os.DirEntry) bool { return strings.HasSuffix(f.Name(), suffix) })
	if i < 0 {
		return ""
	}
	parts := strings.Split(strings.TrimSuffix(files[i].Name(), suffix), "_")
	if len(parts) != 3 {
		return ""
	}
	return parts[1] + "/" + parts[0] + "/" + parts[2]
}
