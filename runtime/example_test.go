package runtime_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"time"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	ksnoop "github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// This example prints large reads of all processes, until Ctrl-C.
func ExampleTrace() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	specs := []string{"vfs_read(file->f_path.dentry->d_name.name, count > 65536, return)"}
	result, err := ksnoop.Trace(ctx, specs, ksnoop.Options{}, func(ev *ksnoop.Event) error {
		name, count, read := &ev.Values[0], &ev.Values[1], &ev.Values[2]
		fmt.Printf("%s[%d] reads %d of %d bytes of %s\n", ev.Comm, ev.PID, read.Int64(), count.Uint64(), name.Data)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	if n := result.Counts.Lost(); n > 0 {
		fmt.Printf("%d calls are not shown\n", n)
	}
}

// This example prints the files that a command opens, as JSON.
func ExampleOptions() {
	var out render.Printer
	options := ksnoop.Options{
		Tree:     true,
		Wishes:   resolve.Wishes{Attach: compiler.Kprobe},
		Programs: compiler.Options{MaxBytes: 256},
		Attached: func(s *ksnoop.Session) (err error) {
			if out, err = render.New(s.Unit(), render.Options{Format: "json"}); err != nil {
				return err
			}
			return s.FollowChildren(exec.Command("cat", "/etc/hostname").Start)
		},
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err := ksnoop.Trace(ctx, []string{"vfs_open(*path, file)"}, options, func(ev *ksnoop.Event) error {
		if err := out.Event(ev); err != nil {
			return err
		}
		return out.Flush(os.Stdout)
	})
	if err != nil {
		log.Fatal(err)
	}
}
