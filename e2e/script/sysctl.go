//go:build linux

package script

import (
	"os"

	"github.com/rogpeppe/go-internal/testscript"
)

// restoreSysctls restores the sysctls that a script may change when the script
// ends, because the next one runs in the same guest.
func restoreSysctls(env *testscript.Env) error {
	for _, name := range []string{"kptr_restrict", "perf_event_paranoid"} {
		file := "/proc/sys/kernel/" + name
		before, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		env.Defer(func() { _ = os.WriteFile(file, before, 0) }) // a value that was read can be written
	}
	return nil
}
