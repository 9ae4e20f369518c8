package spec

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNearest(t *testing.T) {
	for _, test := range []struct{ name, candidates, want string }{
		{"cuont", "file buf count pos", "count"},
		{"coutn", "file buf count pos", "count"},
		{"conut", "file buf count pos", "count"},
		{"ocunt", "file buf count pos", "count"},
		{"cnt", "file buf count pos", "count"},
		{"ct", "file buf count pos", ""},
		{"counts", "file buf count pos", "count"},
		{"COUNT", "cound count", "count"},
		{"count", "cound count", "count"},
		{"sk", "net skb", "skb"},
		{"sbk", "net skb", "skb"},
		{"x", "y z", ""},
		{"", "a bc", ""},
		{"a", "", ""},
		{"ab", "xy", ""},
		{"socket", "sock file", "sock"},
		{"vfs_raed", "vfs_write vfs_read vfs_readv", "vfs_read"},
		{"vfs_reed", "vfs_readv vfs_red vfs_read", "vfs_read"},
		{"bat", "cat bad", "bad"}, // both differ in one letter: the first in the alphabet
		{"bat", "bad cat", "bad"},
		{"fil", "fid file fill", "file"}, // the name may be its beginning
		{"fil", "fill file fid", "file"},
		{"tcp_sendmessage", "tcp_sendmsg tcp_recvmsg", ""}, // four letters more
		{"tcp_sendmesg", "tcp_sendmsg tcp_sendpage", "tcp_sendmsg"},
		{"ip_send_skb", "ip_output udp_send_skb ip_finish_skb", "udp_send_skb"},
		{"completely", "different names here", ""},
	} {
		got, ok := Nearest(test.name, slices.Values(strings.Fields(test.candidates)))
		require.Equal(t, test.want, got, test.name)
		require.Equal(t, test.want != "", ok, test.name)
	}
}

// TestFewestEdits checks that no close name is passed over because of its letters.
func TestFewestEdits(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	word := func() string {
		b := make([]byte, rnd.IntN(9))
		for i := range b {
			b[i] = "abcdeABCDE_019"[rnd.IntN(14)]
		}
		return string(b)
	}
	for range 100_000 {
		a, b := word(), word()
		require.LessOrEqual(t, lettersOf(a).fewestEdits(lettersOf(b)), distance(a, b), "%q %q", a, b)
	}
}

// BenchmarkNearest looks for a name among as many candidates as a kernel has
// functions, with names of about the same lengths.
func BenchmarkNearest(b *testing.B) {
	verbs := []string{"read", "write_iter", "get", "put_page", "alloc", "free_range", "init", "sendmsg"}
	functions := make([]string, 60000)
	for i := range functions {
		functions[i] = fmt.Sprintf("%x_%s_%x", i%977*3, verbs[i%len(verbs)], i/100)
	}
	functions[40000] = "tcp_sendmsg_locked"
	b.ReportAllocs()
	for b.Loop() {
		if name, _ := Nearest("tcp_sednmsg_locked", slices.Values(functions)); name != "tcp_sendmsg_locked" {
			b.Fatal(name)
		}
	}
}
