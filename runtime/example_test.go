package runtime_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"time"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/codegen"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
	ksnoop "github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// This example prints large reads of all processes, until Ctrl-C.
func ExampleTrace() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	specs := []string{"vfs_read(file->f_path.dentry->d_name.name:string, count > 65536, return)"}
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
	_, err := ksnoop.Trace(ctx, []string{"vfs_open(path->dentry->d_name.name:string, file)"}, options, func(ev *ksnoop.Event) error {
		if err := out.Event(ev); err != nil {
			return err
		}
		return out.Flush(os.Stdout)
	})
	if err != nil {
		log.Fatal(err)
	}
}

// smallKernel returns a kernel with one function:
//
//	long vfs_read(struct file *file, unsigned long count);
//
// Any BTF will do: btf.LoadSpec reads that of another kernel from a file.
func smallKernel() *compiler.Target {
	long := &btf.Int{Name: "long", Size: 8, Encoding: btf.Signed}
	count := &btf.Int{Name: "unsigned long", Size: 8}
	file := &btf.Pointer{Target: &btf.Struct{Name: "file", Size: 8, Members: []btf.Member{{Name: "f_mode", Type: count}}}}
	read := &btf.Func{Name: "vfs_read", Linkage: btf.StaticFunc, Type: &btf.FuncProto{
		Return: long, Params: []btf.FuncParam{{Name: "file", Type: file}, {Name: "count", Type: count}},
	}}
	b, err := btf.NewBuilder([]btf.Type{read}, nil)
	if err != nil {
		log.Fatal(err)
	}
	raw, err := b.Marshal(nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	types, err := btf.LoadSpecFromReader(bytes.NewReader(raw))
	if err != nil {
		log.Fatal(err)
	}
	return &compiler.Target{Kernel: types, Arch: compiler.AMD64, Features: compiler.Features{Trampoline: true, TrampolineWords: 12}}
}

// This example makes the programs for a spec and a kernel that need not be there, and
// decodes and prints a record as they write it. It needs no privileges.
func ExampleEvent_Decode() {
	trace, err := spec.Parse("vfs_read(count > 4096, file->f_mode:x)")
	if err != nil {
		log.Fatal(err)
	}
	plan, err := resolve.All([]*spec.Trace{trace}, smallKernel(), resolve.Wishes{})
	if err != nil {
		log.Fatal(err)
	}
	unit, err := codegen.Compile(plan.Probes, compiler.Options{})
	if err != nil {
		log.Fatal(err)
	}
	layout := &unit.Events[0].Layout
	record := make([]byte, layout.Size)
	binary.NativeEndian.PutUint64(record[compiler.HeaderPIDTID:], 123<<32|123)
	copy(record[compiler.HeaderComm:], "cat")
	binary.NativeEndian.PutUint64(record[layout.Slots[0].Off:], 65536)
	binary.NativeEndian.PutUint64(record[layout.Slots[1].Off:], 0x1d)

	var ev ksnoop.Event
	if err := ev.Decode(unit, record); err != nil {
		log.Fatal(err)
	}
	fmt.Println(unit.Attachments[0].Kind, string(ev.Comm), ev.PID, ev.Values[0].Name, ev.Values[0].Uint64())
	out, err := render.New(unit, render.Options{Format: "compact", Look: render.Look{NoHeader: true}})
	if err != nil {
		log.Fatal(err)
	}
	if err := out.Event(&ev); err != nil {
		log.Fatal(err)
	}
	if err := out.Flush(os.Stdout); err != nil {
		log.Fatal(err)
	}
	// Output:
	// fentry cat 123 count 65536
	//                0    0      123 cat              -> vfs_read(count=65536, file->f_mode=0x1d)
}
