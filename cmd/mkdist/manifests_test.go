package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// TestManifests verifies that the manifests have only members that Kubernetes knows,
// and that all run ksnoop in the same way.
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
	require.Equal(t, map[string]string{"kubernetes.io/os": "linux"}, daemons.Spec.Template.Spec.NodeSelector)
	require.Equal(t, "system-node-critical", daemons.Spec.Template.Spec.PriorityClassName)
	resources := daemons.Spec.Template.Spec.Containers[0].Resources
	require.Less(t, resources.Requests.Memory().Value(), resources.Limits.Memory().Value())
	require.True(t, resources.Limits.Cpu().IsZero(), "a tracer that waits for its CPU loses events")
	require.Equal(t, resources, pod.Spec.Containers[0].Resources)
	require.Equal(t, core.RestartPolicyNever, pod.Spec.RestartPolicy)
	var debug core.Container // kubectl takes the members of a container
	read(t, "debug.yaml", &debug)
	require.Equal(t, core.Container{SecurityContext: pod.Spec.Containers[0].SecurityContext}, debug)
}

// TestLogAnnotations verifies that a collector which reads the annotations of the
// DaemonSet does with the lines what the configuration of docs/fleet.md does, which
// e2e/collector runs, and that both know all types of lines.
func TestLogAnnotations(t *testing.T) {
	var daemons apps.DaemonSet
	read(t, "daemonset.yaml", &daemons)
	require.Contains(t, strings.Join(daemons.Spec.Template.Spec.Containers[0].Args, " "), "-o json --time wall")
	annotations := daemons.Spec.Template.Annotations
	require.Equal(t, "true", annotations["io.opentelemetry.discovery.logs/enabled"])
	var annotated map[string]any
	require.NoError(t, yaml.UnmarshalStrict([]byte(annotations["io.opentelemetry.discovery.logs/config"]), &annotated))

	page, err := os.ReadFile("../../docs/fleet.md")
	require.NoError(t, err)
	text := regexp.MustCompile("(?ms)^```yaml file=collector.yaml\n(.*?)^```$").FindSubmatch(page)
	require.NotNil(t, text)
	var config struct {
		Receivers struct {
			FileLog map[string]any `json:"file_log"`
		}
	}
	require.NoError(t, yaml.Unmarshal(text[1], &config))
	operators := annotated["operators"].([]any)
	require.Equal(t, map[string]any{"type": "container"}, operators[0])
	require.Equal(t, config.Receivers.FileLog["operators"], operators[1:])
	delete(annotated, "operators")
	for name, value := range annotated {
		require.Equal(t, config.Receivers.FileLog[name], value, name)
	}

	types, err := os.ReadFile("../../docs/trace.schema.json")
	require.NoError(t, err)
	var schema struct {
		AllOf []struct {
			If struct {
				Properties struct{ Type struct{ Enum []string } }
			}
		}
	}
	require.NoError(t, json.Unmarshal(types, &schema))
	var mapped []any
	for _, of := range operators[2].(map[string]any)["mapping"].(map[string]any) {
		mapped = append(mapped, of.([]any)...)
	}
	var known []any
	for _, one := range schema.AllOf {
		for _, name := range one.If.Properties.Type.Enum {
			known = append(known, name)
		}
	}
	require.NotEmpty(t, known)
	require.ElementsMatch(t, known, mapped)
}

// TestKubectlLines verifies that the kubectl commands of the pages and of the manifests'
// comments name files, objects, labels and images that docs/kubernetes has.
func TestKubectlLines(t *testing.T) {
	objects := map[string]bool{"node/NODE": true} // of any cluster
	labels, images := map[string]bool{}, map[string]bool{}
	paths, err := filepath.Glob("../../docs/kubernetes/*.yaml")
	require.NoError(t, err)
	for _, path := range paths {
		for _, part := range documents(t, filepath.Base(path)) {
			var one struct {
				Kind     string
				Metadata struct{ Name string }
			}
			require.NoError(t, yaml.Unmarshal(part, &one), path)
			objects[strings.ToLower(one.Kind)+"/"+one.Metadata.Name] = true
			for _, app := range regexp.MustCompile(`(?m)^ +app: (\S+)$`).FindAllStringSubmatch(string(part), -1) {
				labels["app="+app[1]] = true
			}
			for _, image := range regexp.MustCompile(`(?m)^ +image: (\S+)`).FindAllStringSubmatch(string(part), -1) {
				images[image[1]] = true
			}
		}
	}
	pages, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	commands := 0
	for _, path := range append(paths, pages...) {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		before := "rollout"
		for _, command := range kubectlCommands(string(text)) {
			commands++
			checkKubectl(t, command, objects, labels, images)
			if command[0] == "logs" {
				require.Contains(t, []string{"wait", "rollout"}, before, "%s: %s: nothing waits until there are logs", path, command)
			}
			before = command[0]
		}
	}
	require.Greater(t, commands, 12)
}

// kubectlCommands returns the words of the kubectl commands of a page, which are in its
// fences, or of the comments of a manifest.
func kubectlCommands(text string) (commands [][]string) {
	text = strings.NewReplacer("\\\n", " ", "\n# ", " ").Replace(text)
	for _, found := range regexp.MustCompile(`(?:^|[ |\n])kubectl ((?:[^\n|&#,;`+"`"+`]|,\S)+)`).FindAllStringSubmatch(text, -1) {
		words := strings.Fields(found[1])
		if slices.Contains([]string{"apply", "debug", "delete", "get", "logs", "rollout", "wait"}, words[0]) {
			commands = append(commands, words)
		}
	}
	return commands
}

// checkKubectl verifies that what a command names is there.
func checkKubectl(t *testing.T, command []string, objects, labels, images map[string]bool) {
	line := strings.Join(command, " ")
	for i, word := range command {
		option, value, ok := strings.Cut(word, "=")
		if !ok && i+1 < len(command) {
			value = command[i+1]
		}
		switch {
		case word == "--":
			return // what follows is a command of the container
		case word == "-f" && command[0] == "apply" && value != "-", option == "--custom":
			require.FileExists(t, filepath.Join("../..", value), line)
		case word == "-l":
			require.True(t, labels[value], line)
			require.Contains(t, command, "--max-log-requests", line)
		case option == "--image":
			require.True(t, images[value], line)
			require.Contains(t, command, "--image-pull-policy=IfNotPresent", line)
		case strings.Contains(word, "/") && !strings.HasPrefix(word, "-") && !strings.HasSuffix(word, ".yaml"):
			require.True(t, objects[word], line)
		case command[0] == "logs" && word == "ksnoop":
			require.True(t, objects["pod/"+word], line)
		}
	}
}

// TestExporterManifests verifies that the exporter runs with the privileges of ksnoop
// or fewer, and that the parts of its manifests name each other.
func TestExporterManifests(t *testing.T) {
	parts := documents(t, "exporter.yaml")
	require.Len(t, parts, 2)
	var file core.ConfigMap
	var daemons apps.DaemonSet
	require.NoError(t, yaml.UnmarshalStrict(parts[0], &file))
	require.NoError(t, yaml.UnmarshalStrict(parts[1], &daemons))
	require.Equal(t, "v1 ConfigMap", file.APIVersion+" "+file.Kind)
	require.Equal(t, "apps/v1 DaemonSet", daemons.APIVersion+" "+daemons.Kind)
	require.Equal(t, daemons.Spec.Selector.MatchLabels, daemons.Spec.Template.Labels)
	var pod core.Pod
	read(t, "pod.yaml", &pod)
	s := daemons.Spec.Template.Spec
	require.Equal(t, map[string]string{"kubernetes.io/os": "linux"}, s.NodeSelector)
	require.Equal(t, "system-node-critical", s.PriorityClassName)
	require.False(t, s.HostPID || s.HostNetwork || s.HostIPC)
	require.False(t, *s.AutomountServiceAccountToken)
	require.Len(t, s.Containers, 1)
	c := s.Containers[0]
	require.Equal(t, pod.Spec.Containers[0].SecurityContext, c.SecurityContext)
	require.Equal(t, "metrics", c.Ports[0].Name)
	require.Equal(t, "metrics", c.LivenessProbe.HTTPGet.Port.String())
	require.Equal(t, "metrics", c.ReadinessProbe.HTTPGet.Port.String())
	require.Equal(t, "$(POD_IP):9536", c.Args[1])
	require.Equal(t, int32(9536), c.Ports[0].ContainerPort)
	require.Equal(t, file.Name, s.Volumes[0].ConfigMap.Name)
	require.Equal(t, s.Volumes[0].Name, c.VolumeMounts[0].Name)
	name, ok := strings.CutPrefix(c.Args[2], c.VolumeMounts[0].MountPath+"/")
	require.True(t, ok)
	packaged, err := os.ReadFile("../ksnoop-exporter/node.probes") // a test of the exporter attaches it
	require.NoError(t, err)
	require.Equal(t, strings.TrimSpace(string(packaged)), file.Data[name])
	require.Less(t, c.Resources.Requests.Memory().Value(), c.Resources.Limits.Memory().Value())

	var monitor struct { // the operator's types would need much more
		APIVersion, Kind string
		Metadata         struct{ Name string }
		Spec             struct {
			Selector            struct{ MatchLabels map[string]string }
			PodMetricsEndpoints []struct {
				Port, Interval string
				Relabelings    []struct {
					SourceLabels []string
					TargetLabel  string
				}
			}
		}
	}
	read(t, "podmonitor.yaml", &monitor)
	require.Equal(t, "monitoring.coreos.com/v1 PodMonitor", monitor.APIVersion+" "+monitor.Kind)
	require.Equal(t, daemons.Spec.Template.Labels, monitor.Spec.Selector.MatchLabels)
	require.Equal(t, c.Ports[0].Name, monitor.Spec.PodMetricsEndpoints[0].Port)
}

// documents returns the documents of a file.
func documents(t *testing.T, name string) [][]byte {
	text, err := os.ReadFile(filepath.Join("../../docs/kubernetes", name))
	require.NoError(t, err)
	return bytes.Split(text, []byte("\n---\n"))
}

func read(t *testing.T, name string, into any) {
	text, err := os.ReadFile(filepath.Join("../../docs/kubernetes", name))
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(text, into), name)
}

// checkSpec verifies that ksnoop gets two capabilities and nothing else;
// e2e/testdata/once/image.txtar traces with these.
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
