package complete

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ksnoop/ksnoop/btfdump/rawbtf"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/target"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// running is the system that ksnoop runs on.
type running struct{}

// btfFiles is the directory with the types of the kernel and of its modules.
const btfFiles = "/sys/kernel/btf"

// types returns the types of a file or, without one, of the running kernel.
func (running) types(file string) typeSource {
	t := &typeFiles{kernelFile: file, read: map[string]*rawbtf.Types{}}
	if file == "" {
		t.kernelFile, t.dir = filepath.Join(btfFiles, "vmlinux"), btfFiles
	}
	return t
}

// typeFiles are files with types, each of which is read when needed.
type typeFiles struct {
	kernelFile string
	dir        string // directory of the modules, or "" if there are none
	read       map[string]*rawbtf.Types
}

func (t *typeFiles) kernel() *rawbtf.Types { return t.names(t.kernelFile, nil) }

func (t *typeFiles) modules() []string {
	if t.dir == "" {
		return nil
	}
	return runtime.LoadedModules()
}

func (t *typeFiles) module(name string) *rawbtf.Types {
	if !slices.Contains(t.modules(), name) {
		return nil
	}
	return t.names(filepath.Join(t.dir, name), t.kernel())
}

// names reads a file, once.
func (t *typeFiles) names(file string, base *rawbtf.Types) *rawbtf.Types {
	n, ok := t.read[file]
	if ok {
		return n
	}
	if raw, err := target.ReadRaw(file); err == nil {
		n, _ = rawbtf.Index(raw, base) // nil if there are none
	}
	t.read[file] = n
	return n
}

// processes returns all processes with their names.
func (running) processes() (all []*candidate) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err == nil {
			all = append(all, &candidate{text: e.Name(), note: threadName(e.Name())})
		}
	}
	return all
}

// threadName returns the name of a process's first thread.
func threadName(pid string) string {
	comm, _ := os.ReadFile(filepath.Join("/proc", pid, "comm"))
	return render.PlainName(strings.TrimSuffix(string(comm), "\n"))
}

// threadNames returns a pattern for the name of each process. One that has just ended has
// no name.
func (r running) threadNames() (all []*candidate) {
	for _, p := range r.processes() {
		if name := commOf(p.note); name != "" {
			all = append(all, &candidate{text: literally.Replace(name)})
		}
	}
	slices.SortFunc(all, func(a, b *candidate) int { return cmp.Compare(a.text, b.text) })
	return slices.CompactFunc(all, func(a, b *candidate) bool { return a.text == b.text })
}

// literally escapes what would be a wildcard in a pattern.
var literally = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)

// commOf returns what $comm is of a thread with this name in /proc, which adds to a
// worker's name what it does, and has names of kernel threads longer than 15 bytes.
func commOf(name string) string {
	if at := strings.IndexAny(name, "-+"); at > len("kworker/R") && strings.HasPrefix(name, "kworker/") {
		name = name[:at]
	}
	return name[:min(len(name), 15)]
}

func (running) users() (all []*candidate) {
	users, _ := target.ReadUsers("/etc/passwd") // none if it cannot be read
	for _, u := range users {
		all = append(all, &candidate{text: render.PlainName(u.Name), note: fmt.Sprint(u.Id)})
	}
	return all
}
