package cgroup

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	id    = strings.Repeat("0123456789abcdef", 4)
	other = strings.Repeat("fedcba9876543210", 4)
	third = strings.Repeat("7777777700000000", 4)
	brief = strings.Repeat("8888888800000000", 4)
)

// TestParse covers the paths that the runtimes give to cgroups.
func TestParse(t *testing.T) {
	const pod = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1b2c.slice/"
	for path, want := range map[string]Container{
		"/system.slice/docker-" + id + ".scope":                   {Runtime: "docker", ID: id},
		"/docker/" + id:                                           {Runtime: "docker", ID: id},
		"/docker/" + id + "/docker/" + other:                      {Runtime: "docker", ID: other},
		pod + "cri-containerd-" + id + ".scope":                   {Runtime: "containerd", ID: id},
		"/kubepods/burstable/pod1b2c/" + id:                       {Runtime: "containerd", ID: id},
		"/default/" + id:                                          {Runtime: "containerd", ID: id},
		"/system.slice/nerdctl-" + id + ".scope":                  {Runtime: "nerdctl", ID: id},
		pod + "crio-" + id + ".scope":                             {Runtime: "cri-o", ID: id},
		pod + "crio-" + id + ".scope/system.slice/ssh.service":    {Runtime: "cri-o", ID: id},
		"/machine.slice/libpod-" + id + ".scope/container":        {Runtime: "podman", ID: id},
		"/libpod_parent/libpod-" + id:                             {Runtime: "podman", ID: id},
		"/system.slice/web.service/libpod-payload-" + id:          {Runtime: "podman", ID: id},
		`/machine.slice/machine-my\x2dbox.scope`:                  {Runtime: "systemd", Name: "my-box"},
		"/machine.slice/systemd-nspawn@box.service/payload":       {Runtime: "systemd", Name: "box"},
		`/machine.slice/systemd-nspawn@a\x2db\xZZ\x2.service`:     {Runtime: "systemd", Name: `a-b\xZZ\x2`},
		"/lxc.payload.web":                                        {Runtime: "lxc", Name: "web"},
		"/user.slice/user-1000.slice/user@1000.service/app.slice": {},
		"/": {},
		"":  {},
		"/machine.slice/libpod-conmon-" + id + ".scope":             {},
		pod + "crio-conmon-" + id + ".scope":                        {},
		"/system.slice/docker-" + id[1:] + ".scope":                 {},
		"/system.slice/docker-" + strings.ToUpper(other) + ".scope": {},
		"/system.slice/docker.service":                              {},
		"/lxc.payload.":                                             {},
		"/machine.slice/systemd-nspawn@box":                         {},
	} {
		got, ok := Parse(path)
		require.Equal(t, want != Container{}, ok, path)
		require.Equal(t, want, got, path)
	}
	require.Equal(t, id[:12], Container{ID: id}.String())
	require.Equal(t, "web", Container{ID: id, Name: "web"}.String())
}

// FuzzParse verifies that a container of any path has something to be shown.
func FuzzParse(f *testing.F) {
	f.Add("/system.slice/docker-" + id + ".scope/machine-a\\x2d.scope")
	f.Fuzz(func(t *testing.T, path string) {
		if c, ok := Parse(path); ok {
			require.True(t, c.ID == "" || isID(c.ID))
			require.NotEmpty(t, c.Runtime)
		}
	})
}
