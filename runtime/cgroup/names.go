package cgroup

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// nameOf returns the name of a container as the files of its runtime below a root have
// it, or "" if they cannot be read. Only root may read most of them. Names have no
// characters that JSON escapes, so they are searched for: a parser of JSON would add
// 0.1 MB to the program.
func nameOf(root string, c Container) string {
	read := func(file string) string {
		text, _ := os.ReadFile(filepath.Join(root, file)) // without it, there is no name
		return string(text)
	}
	switch c.Runtime {
	case "docker": // {..., "Name":"/web", ...}; other names in it have no slash
		return between(read("var/lib/docker/containers/"+c.ID+"/config.v2.json"), `"Name":"/`, `"`)
	case "podman": // [{"id":"...","names":["db"],...},...]
		_, rest, _ := strings.Cut(read("var/lib/containers/storage/overlay-containers/containers.json"), `"id":"`+c.ID+`"`)
		rest, _, _ = strings.Cut(rest, `"id":"`)
		return between(rest, `"names":["`, `"`)
	case "containerd", "cri-o":
		return podName(filepath.Join(root, "var/log/containers"), c.ID)
	}
	return ""
}

// between returns what is between the first occurrence of two texts, or "" if one of them
// is missing.
func between(text, begin, end string) string {
	_, rest, _ := strings.Cut(text, begin)
	found, _, ok := strings.Cut(rest, end)
	if !ok {
		return ""
	}
	return found
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
