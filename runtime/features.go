package runtime

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
)

// version is a kernel's major and minor version.
type version struct{ major, minor int }

func (v version) atLeast(major, minor int) bool {
	return v.major > major || v.major == major && v.minor >= minor
}

// release is the running kernel's version and its build string, the -r and -v
// of uname.
func release() (version, string, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return version{}, "", fmt.Errorf("ask for the kernel's version: %w", err)
	}
	v, err := parseRelease(unix.ByteSliceToString(u.Release[:]))
	return v, unix.ByteSliceToString(u.Version[:]), err
}

func parseRelease(s string) (version, error) {
	var v version
	if _, err := fmt.Sscanf(s, "%d.%d", &v.major, &v.minor); err != nil {
		return v, fmt.Errorf("read kernel release %q: %w", s, err)
	}
	return v, nil
}

// features is what kernels of a version can do.
func features(v version, preemptible bool) compiler.Features {
	f := compiler.Features{
		Preemptible:       preemptible,
		Trampoline:        v.atLeast(5, 5),
		TrampolineWords:   6,
		TrampolineStructs: v.atLeast(6, 1),
		RuntimeAlloc:      v.atLeast(6, 1),
	}
	if v.atLeast(6, 12) {
		f.TrampolineWords = 12
	}
	if !v.atLeast(6, 1) {
		f.ReturnInstances = 1024
	}
	return f
}
