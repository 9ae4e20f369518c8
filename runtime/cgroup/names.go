package cgroup

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// nameOf returns the name of a container as the files of its runtime below a root have
// it, or "" if they cannot be read. Only root may read most of them.
func nameOf(root string, c Container) string {
	switch c.Runtime {
	case "docker":
		var config struct{ Name string } // with a slash: /web
		readJSON(filepath.Join(root, "var/lib/docker/containers", c.ID, "config.v2.json"), &config)
		return strings.TrimPrefix(config.Name, "/")
	case "podman":
		var containers []struct {
			ID    string
			Names []string
		}
		readJSON(filepath.Join(root, "var/lib/containers/storage/overlay-containers/containers.json"), &containers)
		for _, each := range containers {
			if each.ID == c.ID && len(each.Names) > 0 {
				return each.Names[0]
			}
		}
	case "containerd", "cri-o":
		return podName(filepath.Join(root, "var/log/containers"), c.ID)
	}
	return ""
}

// readJSON reads a file into a value. Without it, or if it is damaged, there is no name.
func readJSON(file string, into any) {
	if text, err := os.ReadFile(file); err == nil {
		_ = json.Unmarshal(text, into)
	}
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
