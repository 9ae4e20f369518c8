package render

import (
	"encoding/binary"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

func TestObjectName(t *testing.T) {
	for n, want := range map[uint64]string{1: "a", 26: "z", 27: "aa", 52: "az", 53: "ba", 702: "zz", 703: "aaa"} {
		require.Equal(t, want, objectName(n))
	}
}

// followEvents returns a unit that follows objects, and a function that makes the
// event of a call.
func followEvents() (unit *compiler.Unit, event func(number int, object uint64, at time.Duration, length uint32) *runtime.Event) {
	u32 := &btf.Int{Name: "unsigned int", Size: 4}
	packet := &btf.Struct{Name: "sk_buff"}
	length := &compiler.Value{Name: "skb->len", Type: u32, Scalar: &compiler.Scalar{Size: 4}}
	unit = &compiler.Unit{}
	for i, name := range []string{"ip_send_skb", "ip_rcv", "kfree_skbmem"} {
		p := &compiler.Probe{Func: &compiler.Function{Name: name}, Follow: &compiler.Follow{
			Role: compiler.Role(i + 1), Type: packet, Object: &compiler.Value{Name: "skb", Base: compiler.Base{Param: &compiler.Param{Name: "skb" + string('0'+rune(i))}}},
		}}
		unit.Events = append(unit.Events, &compiler.EventType{Number: i, Probe: p, Kind: compiler.EntryEvent, Items: []*compiler.Value{length}})
	}
	return unit, func(number int, object uint64, at time.Duration, n uint32) *runtime.Event {
		ev := &runtime.Event{EventType: unit.Events[number], PID: 7, TID: 7, Time: at, Comm: []byte("nc"), Object: runtime.Object{Addr: 0xff00 + object, Number: object}}
		ev.Values = []runtime.Value{{Value: length, Data: binary.LittleEndian.AppendUint32(nil, n), Full: 4}}
		if n == 0 {
			ev.Values[0].Fault = compiler.ValueFault
		}
		return ev
	}
}

func TestFollowText(t *testing.T) {
	unit, event := followEvents()
	p, err := New(unit, Options{})
	require.NoError(t, err)
	for _, ev := range []*runtime.Event{
		event(0, 1, 1000, 5), event(1, 1, 1500, 5), event(0, 2, 1600, 9), event(1, 1, 1700, 6), event(1, 2, 1800, 0), event(2, 1, 2000, 6),
	} {
		require.NoError(t, p.Event(ev))
	}
	p.End(Summary{})
	var text strings.Builder
	require.NoError(t, p.Flush(&text))
	require.Equal(t, `            TIME        DELTA  CPU      PID COMM             OBJECT FUNCTION(ARGUMENT) VALUES
            1000  0.000000000    0        7 nc               a      ip_send_skb(skb) begins at 0xff01: skb->len=5
            1500  0.000000500    0        7 nc               a      ip_rcv(skb1)
            1600  0.000000000    0        7 nc               b      ip_send_skb(skb) begins at 0xff02: skb->len=9
            1700  0.000000200    0        7 nc               a      ip_rcv(skb1) skb->len=5 -> 6
            1800  0.000000200    0        7 nc               b      ip_rcv(skb1) skb->len=9 -> /* NULL pointer */
            2000  0.000000300    0        7 nc               a      kfree_skbmem(skb2) ends

a 0xff01: 4 calls in 1µs, ended by kfree_skbmem
  ip_send_skb +0s, ip_rcv +500ns, ip_rcv +700ns, kfree_skbmem +1µs

b 0xff02: 2 calls in 200ns, not ended
  ip_send_skb +0s, ip_rcv +200ns
`, text.String())
}

// TestFollowRepeats verifies that a path has many calls of one function as one step.
func TestFollowRepeats(t *testing.T) {
	unit, event := followEvents()
	p, err := New(unit, Options{})
	require.NoError(t, err)
	require.NoError(t, p.Event(event(0, 1, 1000, 5)))
	for i := range time.Duration(300) {
		require.NoError(t, p.Event(event(1, 1, 1100+i, 5)))
	}
	require.NoError(t, p.Event(event(2, 1, 2000, 5)))
	p.End(Summary{})
	var text strings.Builder
	require.NoError(t, p.Flush(&text))
	_, path, _ := strings.Cut(text.String(), "\n\n")
	require.Equal(t, `a 0xff01: 302 calls in 1µs, ended by kfree_skbmem
  ip_send_skb +0s, ip_rcv +100ns to +354ns (255 times), and 46 more
`, path)
}

// TestFollowNames verifies that values of one name have different ones in JSON, as the
// items of a trace do.
func TestFollowNames(t *testing.T) {
	unit, event := followEvents()
	length := unit.Events[0].Items[0]
	hex := *length
	hex.Format = "x"
	for _, ev := range unit.Events {
		ev.Items = append(ev.Items, &hex)
	}
	p, err := New(unit, Options{Format: "json", Version: "1"})
	require.NoError(t, err)
	for i, n := range []uint32{5, 0, 7} {
		ev := event(i, 1, 1000, n)
		second := ev.Values[0]
		second.Value = &hex
		ev.Values = append(ev.Values, second)
		require.NoError(t, p.Event(ev))
	}
	var text strings.Builder
	require.NoError(t, p.Flush(&text))
	for _, want := range []string{
		`"show":[{"name":"skb->len","type":"unsigned int"},{"name":"skb->len#2","type":"unsigned int","format":"x"}]}`,
		`"values":{"skb->len":5,"skb->len#2":"0x5"}}`,
		`"values":{"skb->len":null,"skb->len#2":null},"was":{"skb->len":5,"skb->len#2":"0x5"},"faults":{"skb->len":"NULL pointer","skb->len#2":"NULL pointer"}}`,
		`"values":{"skb->len":7,"skb->len#2":"0x7"},"was":{"skb->len":null,"skb->len#2":null}}`,
	} {
		require.Contains(t, text.String(), want+"\n")
	}
}

// TestFollowKeeps verifies that the paths of objects take a limited amount of memory.
func TestFollowKeeps(t *testing.T) {
	unit, event := followEvents()
	p, err := New(unit, Options{Format: "json", Version: "1"})
	require.NoError(t, err)
	const objects = 3 * mostPaths
	for n := range uint64(objects) {
		require.NoError(t, p.Event(event(0, n+1, 1000, 5)))
		for range mostSteps + 10 {
			require.NoError(t, p.Event(event(1, n+1, 1000, 5)))
		}
		require.NoError(t, p.Event(event(2, n+1, 2000, 5)))
	}
	require.Len(t, p.(*followJSON).objects, mostPaths)
	p.End(Summary{Objects: objects + 2}) // of two, all events were lost
	var text strings.Builder
	require.NoError(t, p.Flush(&text))
	require.Contains(t, text.String(), `{"type":"summary","objects":194,`)
	paths := 0
	for line := range strings.Lines(text.String()) {
		var object struct {
			Type  string
			Calls int
			End   string
			Path  []any
		}
		require.NoError(t, json.Unmarshal([]byte(line), &object))
		if object.Type == "object" {
			paths++
			require.Len(t, object.Path, mostSteps)
			require.Equal(t, mostSteps+12, object.Calls)
			require.Equal(t, "kfree_skbmem", object.End)
		}
	}
	require.Equal(t, mostPaths, paths)
}

// TestFollowKeepsUnended verifies the same where ends are missing, and that an object that
// is followed for long is kept as long as it may be.
func TestFollowKeepsUnended(t *testing.T) {
	unit, event := followEvents()
	p, err := New(unit, Options{Format: "json", Version: "1"})
	require.NoError(t, err)
	objects := p.(*followJSON).objects
	require.NoError(t, p.Event(event(0, 1, 1000, 5)))
	for n := uint64(2); n < 10*mostPaths; n++ {
		require.NoError(t, p.Event(event(0, n, 1000, 5)))
		if n%10 != 0 {
			require.NoError(t, p.Event(event(2, n, 2000, 5)))
		}
		require.LessOrEqual(t, len(objects), mostPaths)
		require.Contains(t, objects, n)
		if n <= 10*(compiler.MostObjects-1) {
			require.Contains(t, objects, uint64(1))
		}
	}
	require.NotContains(t, objects, uint64(1), "no end is known of it, and not of eight later ones")
	require.Contains(t, objects, uint64(10*mostPaths-40))
}
