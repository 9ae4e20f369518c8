package main

import (
	"bufio"
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// running is the system that ksnoop runs on.
type running struct{}

// btfFiles is where the kernel shows its types, and those of its modules.
const btfFiles = "/sys/kernel/btf"

// types are those of a file or, without one, of the running kernel.
func (running) types(file string) typeSource {
	t := &typeFiles{kernelFile: file, read: map[string]*names{}}
	if file == "" {
		t.kernelFile, t.dir = filepath.Join(btfFiles, "vmlinux"), btfFiles
	}
	return t
}

// typeFiles are files with types, each of which is read when it is asked for.
type typeFiles struct {
	kernelFile string
	dir        string // of the modules; "": there are none
	read       map[string]*names
}

func (t *typeFiles) kernel() *names { return t.names(t.kernelFile, nil) }

func (t *typeFiles) modules() (all []string) {
	if t.dir == "" {
		return nil
	}
	entries, _ := os.ReadDir(t.dir) // what cannot be read has no names
	for _, e := range entries {
		if e.Name() != "vmlinux" {
			all = append(all, e.Name())
		}
	}
	return all
}

func (t *typeFiles) module(name string) *names {
	if !slices.Contains(t.modules(), name) {
		return nil
	}
	return t.names(filepath.Join(t.dir, name), t.kernel())
}

// names reads a file, once.
func (t *typeFiles) names(file string, base *names) *names {
	n, ok := t.read[file]
	if ok {
		return n
	}
	if raw, err := readRaw(file); err == nil {
		n, _ = newNames(raw, base) // nil if there are none
	}
	t.read[file] = n
	return n
}

// processes are all processes with their names.
func (running) processes() (all []*candidate) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err == nil {
			all = append(all, &candidate{text: e.Name(), note: threadName(e.Name())})
		}
	}
	return all
}

// threadName is the name of a process's first thread.
func threadName(pid string) string {
	comm, _ := os.ReadFile(filepath.Join("/proc", pid, "comm"))
	return plainName(strings.TrimSuffix(string(comm), "\n"))
}

func (r running) threadNames() (all []*candidate) {
	for _, p := range r.processes() {
		all = append(all, &candidate{text: p.note})
	}
	slices.SortFunc(all, func(a, b *candidate) int { return cmp.Compare(a.text, b.text) })
	return slices.CompactFunc(all, func(a, b *candidate) bool { return a.text == b.text })
}

func (running) users() (all []*candidate) {
	f, err := os.Open("/etc/passwd")
	if err != nil {
		return nil
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Split(lines.Text(), ":"); len(fields) > 2 {
			all = append(all, &candidate{text: plainName(fields[0]), note: fields[2]})
		}
	}
	return all
}
