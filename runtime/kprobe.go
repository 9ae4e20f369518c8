package runtime

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/kallsyms"
)

type attachFunc func(symbol string, prog *ebpf.Program, opts *link.KprobeOptions) (link.Link, error)

// attachProbe attaches by a perf event. An address is given as an offset from
// the beginning of the kernel's text, in front of modules too.
func (s *Session) attachProbe(attach attachFunc, prog *ebpf.Program, at compiler.Attachment, opts *link.KprobeOptions) (link.Link, error) {
	place := at.Places[0]
	symbol := place.Symbol
	opts.Offset = place.Offset
	if place.Addr != 0 {
		text, err := s.kernel.text()
		if err != nil {
			return nil, err
		}
		symbol = textSymbol
		opts.Offset += place.Addr - text
	}
	l, err := attach(symbol, prog, opts)
	if err != nil && place.Offset > 0 {
		err = refusedOffset(place, symbol, opts.Offset, err)
	}
	return l, err
}

// attachReturn asks for a number of return instances. That is only possible
// through tracefs; without it, the kernel's default has to do.
func (s *Session) attachReturn(prog *ebpf.Program, done *attached) (err error) {
	if done.ReturnInstances > 0 {
		done.group = s.newGroup()
		done.link, err = s.attachProbe(link.Kretprobe, prog, done.Attachment, &link.KprobeOptions{
			RetprobeMaxActive: done.ReturnInstances, TraceFSPrefix: done.group,
		})
		if err == nil {
			return nil
		}
		done.group = ""
	}
	why := err
	done.link, err = s.attachProbe(link.Kretprobe, prog, done.Attachment, &link.KprobeOptions{})
	if err == nil && why != nil {
		s.limited = append(s.limited, done.Places[0].Symbol)
		s.limitedBy = why
		if errno := unix.Errno(0); errors.As(why, &errno) {
			s.limitedBy = errno // the names of tracefs events say nothing
		}
	}
	return err
}

// Notes are sentences for the user on what is not as it was asked for, though
// it is attached.
func (s *Session) Notes() []string {
	if len(s.limited) == 0 {
		return s.notes
	}
	return append(s.notes, fmt.Sprintf("the kretprobes on %s follow only as many calls at a time as the kernel's default, which can be one for each CPU: "+
		"to ask for more takes tracefs, %s", strings.Join(s.limited, ", "), tracefsCure(s.limitedBy)))
}

// textSymbol is where the kernel's text begins. The name is there once.
const textSymbol = "_stext"

// readText finds the address of textSymbol.
func (k *Kernel) readText() (uint64, error) {
	if addrs, err := lookUp([]string{textSymbol}); err == nil && addrs[0] != 0 {
		return addrs[0], nil
	}
	return textAddress(k.readSymbols)
}

// textAddress reads it in the symbol table.
func textAddress(read func(kallsyms.Wanted) (*kallsyms.Table, error)) (uint64, error) {
	symbols, err := read(kallsyms.Wanted{Keep: func(name string) bool { return name == textSymbol }, Prefixes: []string{textSymbol}})
	if err != nil {
		return 0, err
	}
	if err := symbols.NeedAddresses(); err != nil {
		return 0, err
	}
	for _, s := range symbols.Lookup(textSymbol) {
		return s.Addr, nil
	}
	return 0, fmt.Errorf("find the beginning of the kernel's text: there is no symbol %s", textSymbol)
}
