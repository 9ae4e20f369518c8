package render

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPointedAt verifies that what lies behind a BPF program is not named after it,
// unless it is known to be code: a stack may follow.
func TestPointedAt(t *testing.T) {
	const table = "ffffffffc0010000 t bpf_prog_6deef7357e7b4530_foo\t[bpf]\nffffffffc0100000 t kprobe_insn_page\t[__builtin__kprobes]\nffffffffc0200000 t nf_hook\t[nf]\n"
	s := symbolsOf(table)
	require.Equal(t, "bpf_prog_6deef7357e7b4530_foo [bpf]", s.at(0xffffffffc0010000))
	require.Equal(t, "bpf_prog_6deef7357e7b4530_foo+0xfff [bpf]", s.at(0xffffffffc0010fff))
	require.Equal(t, "", s.at(0xffffffffc0011000))
	require.Equal(t, "0xffffffffc0011000", string(s.appendSized(nil, 0xffffffffc0011000)))
	require.Equal(t, "bpf_prog_6deef7357e7b4530_foo+0x1001 [bpf]", s.caller(0xffffffffc0011001))
	require.Equal(t, "kprobe_insn_page+0x8 [__builtin__kprobes]", s.at(0xffffffffc0100008))
	require.Equal(t, "", s.at(0xffffffffc01d6910))
	require.Equal(t, "nf_hook+0x1001 [nf]", s.at(0xffffffffc0201001))
}
