package render

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/compilertest"
	"github.com/ksnoop/ksnoop/runtime"
)

// TestEnded prints the end of an object, after the change before it that no breakpoint
// has seen, and that of one that was never watched.
func TestEnded(t *testing.T) {
	number := &compiler.Value{Name: "p->state", Type: compilertest.Int, Load: &compiler.Scalar{Size: 4}, Scalar: &compiler.Scalar{Size: 4}}
	value := func(n byte) runtime.Value { return runtime.Value{Value: number, Data: []byte{n, 0, 0, 0}, Full: 4} }
	member := &compiler.Probe{Func: &compiler.Function{Name: "p->state"}, Watch: &compiler.Watch{Finder: &compiler.Probe{}, Old: number, New: number}}
	ends := &compiler.Probe{Func: &compiler.Function{Name: "__fput"}, Follow: &compiler.Follow{Role: compiler.Ends}}
	unit := &compiler.Unit{Events: []*compiler.EventType{{Probe: member, Kind: compiler.EntryEvent}}}
	ev := &runtime.Event{EventType: &compiler.EventType{Probe: ends, Kind: compiler.EntryEvent}, PID: 7, TID: 7, Time: 1000, Comm: []byte("sh")}
	e := runtime.Ended{Probe: member, Addr: 0xff04, Last: value(5)}
	u := e
	u.Unseen = &runtime.Unseen{Time: 1000, Probe: member, Addr: 0xff04, Before: value(3), Now: value(5)}
	ev.Ended = []runtime.Ended{e, u, {Probe: member, Addr: 0xff04, Unwatched: true}}
	for format, want := range map[string]string{
		"text": `            1000    0        7 sh               p->state at 0xff04: 5 ends in __fput
            1000    -        - -                p->state at 0xff04: 3 -> 5 unseen: no breakpoint was hit
            1000    0        7 sh               p->state at 0xff04: 5 ends in __fput
            1000    0        7 sh               p->state at 0xff04: ends in __fput, unwatched: it ended before its breakpoints were set
`,
		"json": `{"type":"ended","time":1000,"cpu":0,"pid":7,"tid":7,"comm":"sh","func":"__fput","memory":"p->state","address":"0xff04","before":5}
{"type":"unseen","time":1000,"memory":"p->state","address":"0xff04","before":3,"now":5}
{"type":"ended","time":1000,"cpu":0,"pid":7,"tid":7,"comm":"sh","func":"__fput","memory":"p->state","address":"0xff04","before":5}
{"type":"ended","time":1000,"cpu":0,"pid":7,"tid":7,"comm":"sh","func":"__fput","memory":"p->state","address":"0xff04","before":null,"unwatched":true}
`,
	} {
		p, err := New(unit, Options{Format: format, Values: dumpDefaults})
		require.NoError(t, err)
		require.NoError(t, p.Event(ev))
		var text strings.Builder
		require.NoError(t, p.Flush(&text))
		require.Equal(t, want, text.String()[strings.Index(text.String(), want[:16]):])
	}
}
