package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// The manifests have no member that Kubernetes does not know, and all run
// ksnoop in the same way.
func TestManifests(t *testing.T) {
	var pod core.Pod
	var daemons apps.DaemonSet
	read(t, "pod.yaml", &pod)
	read(t, "daemonset.yaml", &daemons)
	require.Equal(t, "v1 Pod", pod.APIVersion+" "+pod.Kind)
	require.Equal(t, "apps/v1 DaemonSet", daemons.APIVersion+" "+daemons.Kind)
	require.Equal(t, daemons.Spec.Selector.MatchLabels, daemons.Spec.Template.Labels)
	checkSpec(t, pod.Spec)
	checkSpec(t, daemons.Spec.Template.Spec)
	require.Equal(t, core.RestartPolicyNever, pod.Spec.RestartPolicy)
	var debug core.Container // kubectl takes members of one
	read(t, "debug.yaml", &debug)
	require.Equal(t, core.Container{SecurityContext: pod.Spec.Containers[0].SecurityContext}, debug)
}

func read(t *testing.T, name string, into any) {
	text, err := os.ReadFile(filepath.Join("../../docs/kubernetes", name))
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(text, into), name)
}

// checkSpec: two capabilities and nothing else; e2e/testdata/image.txtar traces
// with these.
func checkSpec(t *testing.T, s core.PodSpec) {
	require.Len(t, s.Containers, 1)
	require.Empty(t, s.Volumes)
	require.True(t, s.HostPID)
	require.False(t, s.HostNetwork || s.HostIPC)
	require.False(t, *s.AutomountServiceAccountToken)
	c := s.Containers[0]
	no, yes, root := false, true, int64(0)
	require.Equal(t, &core.SecurityContext{
		RunAsUser: &root, AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes,
		Capabilities:   &core.Capabilities{Drop: []core.Capability{"ALL"}, Add: []core.Capability{"BPF", "PERFMON"}},
		SeccompProfile: &core.SeccompProfile{Type: core.SeccompProfileTypeRuntimeDefault},
	}, c.SecurityContext)
	require.Empty(t, c.VolumeMounts)
	require.NotEmpty(t, c.Args)
	require.Empty(t, c.Command, "it is the image's")
}
