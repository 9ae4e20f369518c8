package rawbtf_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/btfdump/rawbtf"
)

// TestSigns checks the signs of characters in BTF that has them, in BTF that has none,
// and in BTF where a type only has the name of one.
func TestSigns(t *testing.T) {
	for _, tc := range []struct {
		name                 string
		size                 uint32
		signed, char         btf.IntEncoding
		wantSigned, wantChar btf.IntEncoding
	}{
		{"5.10: pahole without signs", 1, btf.Unsigned, btf.Unsigned, btf.Signed, btf.Signed},
		{"the same for arm64", 1, btf.Unsigned, btf.Unsigned, btf.Signed, btf.Unsigned},
		{"6.1: char is signed", 1, btf.Signed, btf.Signed, btf.Signed, btf.Signed},
		{"6.12: char is unsigned", 1, btf.Signed, btf.Unsigned, btf.Signed, btf.Unsigned},
		{"not characters", 2, btf.Unsigned, btf.Unsigned, btf.Unsigned, btf.Unsigned},
	} {
		t.Run(tc.name, func(t *testing.T) {
			register := "di"
			if strings.HasSuffix(tc.name, "arm64") {
				register = "regs"
			}
			file := raw(t, &btf.Struct{Name: "pt_regs", Size: 4, Members: []btf.Member{{Name: register, Type: number}}}, &btf.Struct{Name: "s", Size: 2 * tc.size, Members: []btf.Member{
				{Name: "level", Type: &btf.Typedef{Name: "s8", Type: &btf.Int{Name: "signed char", Size: tc.size, Encoding: tc.signed}}},
				{Name: "letter", Type: &btf.Int{Name: "char", Size: tc.size, Encoding: tc.char}, Offset: 8 * btf.Bits(tc.size)},
			}})
			whole, err := rawbtf.Load(file, bytes.NewReader(file))
			require.NoError(t, err)
			part, err := rawbtf.Take(file, rawbtf.Want{Names: []string{"s"}})
			require.NoError(t, err)
			for _, types := range []*btf.Spec{whole, part.Types} {
				var s *btf.Struct
				require.NoError(t, types.TypeByName("s", &s))
				level, _ := btf.As[*btf.Int](s.Members[0].Type)
				letter, _ := btf.As[*btf.Int](s.Members[1].Type)
				require.Equal(t, []btf.IntEncoding{tc.wantSigned, tc.wantChar}, []btf.IntEncoding{level.Encoding, letter.Encoding})
			}
		})
	}
}
