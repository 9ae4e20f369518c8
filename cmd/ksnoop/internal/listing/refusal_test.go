package listing

import (
	"errors"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// TestDescribeRefusal verifies that a refusal shows the program and the complaint.
func TestDescribeRefusal(t *testing.T) {
	const name = "fentry on f (probe 0)"
	unit := &compiler.Unit{
		Collection: &ebpf.CollectionSpec{Programs: map[string]*ebpf.ProgramSpec{
			name: {Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0).WithSource(asm.Comment("done")), asm.Return()}},
		}},
		Attachments: []compiler.Attachment{{Program: name, Places: []compiler.Place{{Symbol: "f"}}}},
	}
	refusal := &ebpf.VerifierError{Cause: errors.New("permission denied"), Log: []string{"0: (bf) r6 = r1", "R1 invalid mem access"}}
	found := &runtime.VerifierError{Program: name, Err: refusal}
	var text strings.Builder
	DescribeRefusal(&text, unit, found, false)
	require.Equal(t, `ksnoop: the kernel's verifier refused the program "fentry on f (probe 0)", which is a bug of ksnoop: please report what follows

program "fentry on f (probe 0)" for f, where `+registers+`:

        // done
    0   r0 = 0
    1   exit

the verifier's log:

        0: (bf) r6 = r1
        R1 invalid mem access

`, text.String())

	refusal.Log = make([]string, 100)
	text.Reset()
	DescribeRefusal(&text, unit, found, false)
	require.Contains(t, text.String(), "the last 40 of 100 lines of the verifier's log (-d shows all):")
}
