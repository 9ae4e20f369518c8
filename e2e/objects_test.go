//go:build linux

package e2e

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/stretchr/testify/require"
)

// ids is a set of ids of BPF objects. The kernel never uses an id again.
type ids map[uint32]bool

func (n ids) without(others ids) ids {
	rest := ids{}
	for id := range n {
		if !others[id] {
			rest[id] = true
		}
	}
	return rest
}

// objects holds the ids of the BPF objects in the kernel.
type objects struct{ programs, maps, links ids }

func bpfObjects(t *testing.T) objects {
	o := objects{ids{}, ids{}, ids{}}
	for id := uint32(0); following(t, &id, o.programs, ebpf.ProgramGetNextID); {
	}
	for id := uint32(0); following(t, &id, o.maps, ebpf.MapGetNextID); {
	}
	links := new(link.Iterator)
	defer links.Close()
	for links.Next() {
		o.links[uint32(links.ID)] = true
	}
	require.NoError(t, links.Err())
	return o
}

// following adds the next id after id to all. It returns false if there is
// none.
func following[ID ~uint32](t *testing.T, id *uint32, all ids, next func(ID) (ID, error)) bool {
	n, err := next(ID(*id))
	if errors.Is(err, os.ErrNotExist) {
		return false
	}
	require.NoError(t, err)
	*id = uint32(n)
	all[*id] = true
	return true
}

// requireNothingLeft checks that in the end the kernel holds no object that did
// not exist before. The kernel frees objects after grace periods that no system
// call waits for.
func requireNothingLeft(t *testing.T, before objects) {
	require.Eventually(t, func() bool {
		now := bpfObjects(t)
		return len(now.programs.without(before.programs))+len(now.maps.without(before.maps))+len(now.links.without(before.links)) == 0
	}, time.Minute, 10*time.Millisecond)
	require.Empty(t, kprobeEvents(t))
}

// kprobeEvents returns the events in tracefs.
func kprobeEvents(t *testing.T) string {
	text, err := os.ReadFile("/sys/kernel/tracing/kprobe_events")
	require.NoError(t, err)
	return string(text)
}
