package resolve

import (
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/compilertest"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// fields is a structure of bitfields that are declared with types of 64 bits.
var fields = &btf.Struct{Name: "fields", Size: 24, Members: []btf.Member{
	{Name: "u2", Type: compilertest.Ulong, BitfieldSize: 2},
	{Name: "u31", Type: compilertest.Ulong, Offset: 2, BitfieldSize: 31},
	{Name: "s2", Type: compilertest.Long, Offset: 33, BitfieldSize: 2},
	{Name: "u32", Type: compilertest.Ulong, Offset: 64, BitfieldSize: 32},
	{Name: "s32", Type: compilertest.Long, Offset: 96, BitfieldSize: 32},
	{Name: "u33", Type: compilertest.Ulong, Offset: 128, BitfieldSize: 33},
}}

func fieldsTarget(t *testing.T) *compiler.Target {
	target := compilertest.NewTarget(t, compilertest.WithKprobeSession,
		compilertest.Function("fielded", compilertest.Void, compilertest.Param("p", compilertest.Ptr(fields)), compilertest.Param("n", compilertest.Int)))
	target.Symbols = nil
	return target
}

// TestPromotion verifies the types of computed values, which GCC gives for the same
// operations by _Generic.
func TestPromotion(t *testing.T) {
	const sint, uint, slong, ulong = "int", "unsigned int", "long int", "long unsigned int"
	for text, want := range map[string]string{
		"p->u2 - 3":       sint,
		"p->u31 - 3":      sint,
		"p->s2 * 2":       sint,
		"p->u2 << 1":      sint,
		"p->u2 + n":       sint,
		"p->u32 - 3":      uint,
		"p->u32 + n":      uint,
		"p->u32 >> p->u2": uint,
		"p->s32 - 3":      sint,
		"p->s32 + p->u32": uint,
		"p->u2 + p->u33":  ulong,
		"p->u33 - 3":      ulong,
		"(s64)p->u2 - 3":  slong,
		"n + 3000000000":  slong,
		"n + 0xb2d05e00":  uint,
		"n + (0 + 3000M)": slong,
	} {
		v := mustResolve(t, fieldsTarget(t), "fielded("+text+")").Entry[0]
		require.Equal(t, want, v.Type.TypeName(), text)
	}
}

// TestPromotedConditions verifies that conditions that can hold are accepted without a
// note, and what is said of others.
func TestPromotedConditions(t *testing.T) {
	for text, want := range map[string]string{
		"p->u2 - 3 < 0":      "",
		"n < p->u2":          "",
		"p->s32 < p->u2":     "",
		"p->u32 - 3 < 0":     "'p->u32 - 3 < 0' can never hold: 'p->u32 - 3' is unsigned int and holds 0 to 4294967295",
		"p->u33 - 3 < 0":     "'p->u33 - 3 < 0' can never hold: 'p->u33 - 3' is long unsigned int and holds 0 to 18446744073709551615",
		"(p->u32 & 7) > 7":   "'(p->u32 & 7) > 7' can never hold: 'p->u32 & 7' has no other bits than 0x7",
		"p->u2 << 32 == 0":   "'p->u2' has 32 bits, and is shifted by 32",
		"n < p->u32":         "note",
		"p->u32 > p->s2 * 2": "note",
	} {
		trace, err := spec.Parse("fielded(" + text + ")")
		require.NoError(t, err)
		plan, err := All([]*spec.Trace{trace}, fieldsTarget(t), Wishes{})
		switch want {
		case "", "note":
			require.NoError(t, err, text)
			require.Equal(t, want == "note", len(plan.Notes) == 1, "%s: %s", text, plan.Notes)
		default:
			require.ErrorContains(t, err, want, text)
		}
	}
}
