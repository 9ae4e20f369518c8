package runtime

import (
	"fmt"
	goruntime "runtime"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// requireBreakpoints skips the test where nobody may set breakpoints in the kernel, or no
// breakpoint is hit. All machines of e2e have breakpoints.
func requireBreakpoints(t *testing.T) {
	requireTypes(t)
	if p := ReadPrivileges(); p.Refusal() != "" || !p.SysAdmin {
		t.Skip("breakpoints in the kernel's memory need CAP_SYS_ADMIN")
	}
	if err := (&breakpoints{probe: &compiler.Probe{Watch: &compiler.Watch{Size: 1}}}).try(); err != nil {
		t.Skip(err)
	}
}

// loadWatch loads what watches memory.
func loadWatch(t *testing.T, text string) *Session {
	trace, err := spec.ParseWatch(text)
	require.NoError(t, err)
	s, _ := loaded(t, trace)
	return s
}

// TestWatchedEarly changes memory after its first read and before its breakpoints
// are set: that is unseen. What changes after that is seen.
func TestWatchedEarly(t *testing.T) {
	requireBreakpoints(t)
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	types, err := btf.LoadKernelSpec()
	require.NoError(t, err)
	var task *btf.Struct
	require.NoError(t, types.TypeByName("task_struct", &task))
	addr := readOnce(t, 0, "(u64)$task")[0][0].Uint64()
	for _, m := range task.Members {
		if m.Name == "comm" {
			addr += uint64(m.Offset.Bytes())
		}
	}
	rename := func(name string) {
		require.NoError(t, unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(unsafe.StringData(name+"\x00"))), 0, 0, 0))
	}
	rename("a")
	s := loadWatch(t, fmt.Sprintf("*(u8 *)%#x", addr))
	at := s.unit.Attachments[0]
	b := &breakpoints{probe: at.Places[0].Probe, program: at.Program}
	defer b.Close()
	require.NoError(t, s.beginAt(b, addr))
	rename("b")
	require.NoError(t, b.set(s.coll.Programs[b.program]))
	u, err := s.unseenBy(b)
	require.NoError(t, err)
	require.NotNil(t, u)
	require.Equal(t, "a -> b", fmt.Sprintf("%c -> %c", u.Before.Uint64(), u.Now.Uint64()))
	rename("c")
	u, err = s.unseenBy(b)
	require.NoError(t, err)
	missed, err := s.missedWrites(&attached{Attachment: at, link: b})
	require.NoError(t, err)
	require.True(t, u == nil || missed > 0, "%v: only where a thread in bpf(2) was preempted on this CPU, a write is missed, and counted", u)
}

// TestSinceFound verifies what is unseen of an object between the call that finds it
// and the breakpoints.
func TestSinceFound(t *testing.T) {
	number := &compiler.Value{Scalar: &compiler.Scalar{Size: 1}}
	state := func(n uint64) Value { return stateOf(number, n) }
	for _, tc := range []struct {
		found, first uint64
		early        *Unseen
		want         string
	}{
		{5, 5, nil, ""},
		{5, 6, nil, "5 -> 6"},
		{5, 5, &Unseen{Before: state(5), Now: state(7)}, "5 -> 7"},
		{5, 6, &Unseen{Before: state(6), Now: state(7)}, "5 -> 7"},
		{5, 6, &Unseen{Before: state(6), Now: state(5)}, ""},
	} {
		b := &breakpoints{probe: &compiler.Probe{Watch: &compiler.Watch{Old: number}}, first: tc.first, early: tc.early}
		got := ""
		if u := b.sinceFound([]byte{byte(tc.found), 0, 0, 0}); u != nil {
			got = fmt.Sprintf("%d -> %d", u.Before.Uint64(), u.Now.Uint64())
		}
		require.Equal(t, tc.want, got)
		require.Nil(t, b.early)
	}
}

// TestTryBreakpoint verifies that a lack of privileges shows before an object is found.
func TestTryBreakpoint(t *testing.T) {
	requireBreakpoints(t)
	b := &breakpoints{probe: &compiler.Probe{Watch: &compiler.Watch{Finder: &compiler.Probe{}, Size: 4}}}
	refused := make(chan error)
	go func() {
		goruntime.LockOSThread() // and ends with it, as its capabilities are gone
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		if err := unix.Capget(&header, &data[0]); err != nil {
			refused <- err
			return
		}
		data[0].Effective &^= 1 << unix.CAP_SYS_ADMIN
		if err := unix.Capset(&header, &data[0]); err != nil {
			refused <- err
			return
		}
		_, err := new(Session).attachBreakpoints("", b.probe)
		refused <- err
	}()
	err := &AttachError{b.probe, compiler.Breakpoint, <-refused}
	require.Contains(t, err.Reason(), "breakpoints in its memory need CAP_SYS_ADMIN")
	_, again := new(Session).attachBreakpoints("", b.probe)
	require.NoError(t, again)
}

// TestReadLast verifies which value an object has had last, and when its change is
// unseen.
func TestReadLast(t *testing.T) {
	requireBreakpoints(t)
	s := loadWatch(t, "*(u8 *)0xffff888000000000")
	after := s.unit.Attachments[0].Places[0].Probe.Watch
	before := *after
	before.New = nil // as where the program runs before the write
	for _, tc := range []struct {
		w                      *compiler.Watch
		last, end, known, hits uint64
		want                   string
	}{
		{after, 5, 0, 0, 1, "5"},
		{after, 5, 5, 1, 1, "5"},
		{after, 5, 6, 1, 1, "6, 5 -> 6"},
		{&before, 5, 6, 1, 0, "6, 5 -> 6"},
		{&before, 5, 6, 1, 1, "6"},
	} {
		for off, n := range map[int]uint64{
			compiler.WatchedLast: tc.last, compiler.WatchedEnd: tc.end, compiler.WatchedKnown: tc.known, compiler.WatchedHits: tc.hits,
		} {
			atomic.StoreUint64(s.watched.word(off), n)
		}
		var e Ended
		s.readLast(tc.w, &e)
		got := fmt.Sprint(e.Last.Uint64())
		if u := e.Unseen; u != nil {
			got += fmt.Sprintf(", %d -> %d", u.Before.Uint64(), u.Now.Uint64())
		}
		require.Equal(t, tc.want, got)
	}
}

// watchingTwo returns a session that watches a member of two objects of its own memory.
func watchingTwo() *Session {
	memory := func() *counterMemory { return &counterMemory{bytes: make([]byte, 4096)} }
	s := &Session{objects: memory(), watched: memory()}
	member := compiler.Member{Addr: &compiler.Value{}, Now: &compiler.Value{Scalar: &compiler.Scalar{Size: 1}}}
	find := &compiler.Probe{Follow: &compiler.Follow{Limit: 2}, Find: &compiler.Find{Members: []compiler.Member{member}}}
	for slot := range 2 {
		w := &compiler.Watch{Slot: slot, Finder: find, Old: member.Now}
		s.attached = append(s.attached, &attached{link: &breakpoints{probe: &compiler.Probe{Func: &compiler.Function{Name: "member"}, Watch: w}}})
	}
	return s
}

// TestUnreadMember verifies that a member that could not be read has no last value.
func TestUnreadMember(t *testing.T) {
	s := watchingTwo()
	find := s.attached[0].link.(*breakpoints).probe.Watch.Finder
	m := find.Find.Members[0]
	found := &Event{EventType: &compiler.EventType{Probe: find}, Object: Object{Addr: 8, Number: 1}}
	found.Values = []Value{{Value: m.Addr, Data: []byte{8, 0, 0, 0, 0, 0, 0, 0}}, {Value: m.Now, Fault: compiler.ValueFault}}
	_, err := s.WatchObject(found)
	require.EqualError(t, err, "watch member: the memory at 0x8 could not be read")
	end := &Event{Object: found.Object}
	require.NoError(t, s.EndObject(end))
	require.Empty(t, end.Ended)
	found.Object.Number, found.Values[1] = 2, Value{Value: m.Now, Data: []byte{5}}
	_, err = s.WatchObject(found)
	require.NoError(t, err)
	end.Object.Number = 2
	require.NoError(t, s.EndObject(end), "it has ended before")
	require.Len(t, end.Ended, 1)
	require.True(t, end.Ended[0].Unwatched, "nothing is known of the last value")
	require.False(t, s.Watching())
}

// TestLostFound verifies that an object is waited for no longer if the record of the call
// that found it was lost, while that of another one is on the way.
func TestLostFound(t *testing.T) {
	s := watchingTwo()
	first, second := s.attached[0].link.(*breakpoints), s.attached[1].link.(*breakpoints)
	require.False(t, s.Gone())
	require.False(t, s.Gone(), "nothing is found yet")
	require.NoError(t, s.objects.store(compiler.ObjectStarted, 1))
	require.False(t, s.Gone(), "its record may be on the way")
	first.addr, first.object = 8, 1
	require.NoError(t, s.objects.store(compiler.ObjectAddrs, 8))
	require.NoError(t, s.objects.store(compiler.ObjectNumbers, 1))
	require.False(t, s.Gone())
	require.NoError(t, s.objects.store(compiler.ObjectStarted, 2))
	require.False(t, s.Gone())
	ended, err := s.EndGone()
	require.NoError(t, err)
	require.Empty(t, ended)
	require.True(t, s.Gone())
	ended, err = s.EndGone()
	require.NoError(t, err)
	require.Equal(t, []Ended{{Probe: second.probe}}, ended)
	require.True(t, s.Watching())
	require.False(t, s.Gone())
	require.NoError(t, s.objects.store(compiler.ObjectAddrs, 0))
	require.False(t, s.Gone())
	require.True(t, s.Gone())
	ended, err = s.EndGone()
	require.NoError(t, err)
	require.Len(t, ended, 1)
	require.False(t, s.Watching())
}
