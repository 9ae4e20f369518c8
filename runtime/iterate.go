package runtime

import (
	"io"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// iterate runs an iterator, and is what is read of what it writes.
func iterate[T any](prog *ebpf.Program, read func(io.Reader) (T, error)) (got T, err error) {
	iter, err := link.AttachIter(link.IterOptions{Program: prog})
	if err != nil {
		return got, err
	}
	defer iter.Close()
	r, err := iter.Open()
	if err != nil {
		return got, err
	}
	defer r.Close()
	return read(r)
}
