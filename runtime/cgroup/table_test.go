package cgroup

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// newSystem returns a table of directories that stand for cgroups, with files that have
// the names of containers, and a function that makes a cgroup and returns its id.
func newSystem(t *testing.T) (table *Table, add func(path string) uint64) {
	root := t.TempDir()
	write := func(name, text string) {
		name = filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
	}
	write("var/lib/docker/containers/"+id+"/config.v2.json", `{"State":{},"GraphDriver":{"Name":"x"},"Name":"/web"}`)
	write("var/lib/docker/containers/"+other+"/config.v2.json", `{"Name":"/cut`)
	write("var/lib/docker/containers/"+third+"/config.v2.json", `{ "Path" : "\"Name\":\"/x\"", "Name" : "/a\u002db" }`)
	write("var/lib/containers/storage/overlay-containers/containers.json",
		`[{"names":[ "db" , "x"],"id":"`+other+`"},{"id":"`+third+`","names":["cache"]},{"id":"`+id+`"}]`)
	write("var/lib/containers/storage/overlay-containers/volatile-containers.json", `[{"id":"`+brief+`","names":["job"]}]`)
	write("var/log/containers/shop-7d_prod_cart-"+other+".log", "")
	write("var/log/containers/strange-"+id+".log", "")
	mount := filepath.Join(root, "cgroup")
	add = func(path string) uint64 {
		dir := filepath.Join(mount, path)
		require.NoError(t, os.MkdirAll(dir, 0o755))
		info, err := os.Stat(dir)
		require.NoError(t, err)
		return info.Sys().(*syscall.Stat_t).Ino
	}
	add("/")
	now := time.Unix(1, 0)
	return &Table{root: root, mounts: func() []string { return []string{mount} }, now: func() time.Time {
		now = now.Add(pause / 2)
		return now
	}}, add
}

// TestTable verifies that containers have the names that the runtimes' files have, and
// that new cgroups are looked for, but not each time.
func TestTable(t *testing.T) {
	table, add := newSystem(t)
	for path, want := range map[string]string{
		"system.slice/docker-" + id + ".scope":               "web",
		"system.slice/docker-" + other + ".scope":            "fedcba987654",
		"system.slice/docker-" + third + ".scope":            "a-b",
		"machine.slice/libpod-" + other + ".scope/container": "db",
		"machine.slice/libpod-" + third + ".scope":           "cache",
		"machine.slice/libpod-" + id + ".scope":              "0123456789ab",
		"system.slice/job.service/libpod-payload-" + brief:   "job",
		"kubepods/pod1/" + other:                             "prod/shop-7d/cart",
		"kubepods/pod1/" + id:                                "0123456789ab",
		"machine.slice/machine-box.scope":                    "box",
	} {
		table, n := &Table{root: table.root, mounts: table.mounts, now: time.Now}, add(path)
		c, ok := table.Of(n)
		require.True(t, ok, path)
		require.Equal(t, want, c.String(), path)
		_, ok = table.Of(n + 1<<40)
		require.False(t, ok)
	}
	_, ok := table.Of(add("user.slice"))
	require.False(t, ok)
	late := add("lxc.payload.late")
	_, ok = table.Of(late)
	require.False(t, ok, "within the pause")
	c, ok := table.Of(late)
	require.True(t, ok)
	require.Equal(t, "late", c.String())
	require.NoError(t, os.RemoveAll(filepath.Join(table.mounts()[0], "lxc.payload.late")))
	for range 4 {
		_, ok = table.Of(late)
		require.True(t, ok, "it is known for events that are shown late")
	}
	for n := range uint64(mostKnown + 1) {
		table.known[1<<40+n] = Container{}
	}
	table.read()
	require.Less(t, len(table.known), 100)
}

// TestDirectory verifies that a container is found by its name and by its id, and what is
// said if it is not.
func TestDirectory(t *testing.T) {
	table, add := newSystem(t)
	_, err := (&Table{mounts: func() []string { return nil }}).Directory("web")
	require.EqualError(t, err, "containers are found by a mount of cgroup v2, and there is none")
	_, err = table.Directory("web")
	require.EqualError(t, err, "there is no container now")
	add("system.slice/docker-" + id + ".scope/init.scope")
	add("machine.slice/libpod-" + other + ".scope/container")
	for _, text := range []string{"web", id, id[:4]} {
		dir, err := table.Directory(text)
		require.NoError(t, err, text)
		require.Equal(t, filepath.Join(table.mounts()[0], "system.slice/docker-"+id+".scope"), dir)
	}
	for _, text := range []string{id[:3], "we", "", "1234"} {
		_, err = table.Directory(text)
		require.EqualError(t, err, "no container has this name or id now: there are db, web", text)
	}
	add("docker/" + id[:63] + "0")
	_, err = table.Directory(id[:4])
	require.EqualError(t, err, "2 containers have this name, or an id that begins so: give more digits of the id")
	for n := range byte(9) {
		add("lxc.payload.c" + string('0'+n))
	}
	_, err = table.Directory("none")
	require.EqualError(t, err, "no container has this name or id now: there are 0123456789ab, c0, c1, c2, c3, c4, c5, c6 and 4 more")
}

// TestFind verifies that a cgroup is found by its id.
func TestFind(t *testing.T) {
	table, add := newSystem(t)
	n := add("a/b")
	require.Equal(t, filepath.Join(table.mounts()[0], "a/b"), Find(table.mounts(), n))
	require.Empty(t, Find(table.mounts(), n+1<<40))
}
