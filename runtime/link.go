package runtime

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/ksnoop/ksnoop/compiler"
)

// byTarget splits an attachment into those of places by name and by address,
// which one link cannot mix.
func byTarget(at compiler.Attachment) []compiler.Attachment {
	byName, byAddr := at, at
	byName.Places, byAddr.Places = nil, nil
	for _, p := range at.Places {
		if p.Addr == 0 {
			byName.Places = append(byName.Places, p)
		} else {
			byAddr.Places = append(byAddr.Places, p)
		}
	}
	return []compiler.Attachment{byName, byAddr}
}

// attach makes the link of an attachment.
func (s *Session) attach(at compiler.Attachment) (*attached, error) {
	prog := s.coll.Programs[at.Program]
	done := &attached{Attachment: at}
	var err error
	switch {
	case at.Kind.Multi():
		done.link, err = attachMulti(prog, at)
	case at.Kind == compiler.Kprobe:
		done.link, err = s.attachProbe(link.Kprobe, prog, at, &link.KprobeOptions{})
	case at.Kind == compiler.Kretprobe:
		err = s.attachReturn(prog, done)
	default:
		done.link, err = link.AttachTracing(link.TracingOptions{Program: prog})
	}
	if err != nil {
		return nil, err
	}
	return done, nil
}

func attachMulti(prog *ebpf.Program, at compiler.Attachment) (link.Link, error) {
	var opts link.KprobeMultiOptions
	for _, p := range at.Places {
		if p.Addr != 0 {
			opts.Addresses = append(opts.Addresses, uintptr(p.Addr))
		} else {
			opts.Symbols = append(opts.Symbols, p.Symbol)
		}
		opts.Cookies = append(opts.Cookies, p.Cookie)
	}
	if at.Kind == compiler.KretprobeMulti {
		return link.KretprobeMulti(prog, opts)
	}
	opts.Session = at.Kind == compiler.Session
	return link.KprobeMulti(prog, opts)
}
