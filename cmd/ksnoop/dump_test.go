package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
)

// writeTypes writes a BTF file with a struct, two structs of one name and an enum.
func writeTypes(t *testing.T) string {
	integer := &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed}
	char := &btf.Int{Name: "char", Size: 1, Encoding: btf.Signed}
	b, err := btf.NewBuilder([]btf.Type{
		&btf.Struct{Name: "device", Size: 12, Members: []btf.Member{
			{Name: "name", Type: &btf.Array{Type: char, Index: integer, Nelems: 8}},
			{Name: "index", Type: integer, Offset: 64},
		}},
		&btf.Struct{Name: "twin", Size: 4, Members: []btf.Member{{Name: "a", Type: integer}}},
		&btf.Struct{Name: "twin", Size: 8, Members: []btf.Member{{Name: "b", Type: integer}}},
		&btf.Enum{Name: "mode", Size: 4, Values: []btf.EnumValue{{Name: "OFF", Value: 0}, {Name: "ON", Value: 1}}},
		&btf.Typedef{Name: "number", Type: integer},
	}, nil)
	require.NoError(t, err)
	raw, err := b.Marshal(nil, nil)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "btf")
	require.NoError(t, os.WriteFile(path, raw, 0o644))
	return path
}

func TestDump(t *testing.T) {
	types := writeTypes(t)
	const device = "eth0\x00\x00\x00\x00\x2a\x00\x00\x00"
	for _, tc := range []struct{ args, input, want string }{
		{"device", device, "(struct device){\n\t.name = (char[8])\"eth0\",\n\t.index = (int)42,\n}\n"},
		{"struct|device|--indent|2", device, "(struct device){\n  .name = (char[8])\"eth0\",\n  .index = (int)42,\n}\n"},
		{"struct device|--compact", device, "(struct device){.name = (char[8])\"eth0\",.index = (int)42,}\n"},
		{"device|--compact|--skip-names", device, "{\"eth0\",42,}\n"},
		{"device|-o|json", device, "{\"name\":\"eth0\",\"index\":42}\n"},
		{"device|--hex|--compact", "0x6574 6830 0000 0000\n2a000000", "(struct device){.name = (char[8])\"eth0\",.index = (int)42,}\n"},
		{"device|--compact|--emit-zeroes", strings.Repeat("\x00", 12), "(struct device){.name = (char[8])\"\",.index = (int)0,}\n"},
		{"enum mode", "\x01\x00\x00\x00", "(enum mode)ON\n"},
		{"number", "\xff\xff\xff\xff", "(number)-1\n"},
		{"number [ 2 ]|--compact", "\x01\x00\x00\x00\x02\x00\x00\x00", "(number[2])[1,2,]\n"},
		{"number[2][3]|-o|json", strings.Repeat("\x07\x00\x00\x00", 6), "[[7,7,7],[7,7,7]]\n"},
		{"const struct device *", "\x00\x10\x00\x00\x00\x00\x00\x00", "(struct device *)0x1000\n"},
		{"void*[0x1]|-o|json", "\x00\x10\x00\x00\x00\x00\x00\x00", "[\"0x1000\"]\n"},
		{"struct device[2]|--compact|--skip-names", device + device, "[{\"eth0\",42,},{\"eth0\",42,},]\n"},
	} {
		var stdout, stderr bytes.Buffer
		args := []string{"ksnoop", "dump", "--btf", types}
		if rest, ok := strings.CutPrefix(tc.args, "struct|"); ok {
			tc.args = "struct " + rest
		}
		args = append(args, strings.Split(tc.args, "|")...)
		require.Zero(t, ksnoopStatus(args, strings.NewReader(tc.input), &stdout, &stderr), "%v: %s", args, &stderr)
		require.Equal(t, tc.want, stdout.String(), args)
	}
}

func TestDumpErrors(t *testing.T) {
	types := writeTypes(t)
	for _, tc := range []struct {
		args   string
		status int
		want   string
	}{
		{"devise", exit.Usage, "ksnoop: there is no type \"devise\": did you mean \"device\"?\n"},
		{"union device", exit.Usage, "ksnoop: there is no type \"union device\": did you mean \"struct device\"?\n"},
		{"twin", exit.Usage, "ksnoop: there are 2 types \"twin\": #"},
		{"#99", exit.Usage, "ksnoop: there is no type #99\n"},
		{"device[x]", exit.Usage, "ksnoop: \"device[x]\" is not a type: an array of it has a number in brackets, as in 'u32[4]'\n"},
		{"device]", exit.Usage, "ksnoop: \"device]\" is not a type: an array of it has a number in brackets, as in 'u32[4]'\n"},
		{"[2]", exit.Usage, "ksnoop: \"\" is not the name of a type: as in file or 'struct file'\n"},
		{"*", exit.Usage, "ksnoop: \"\" is not the name of a type: as in file or 'struct file'\n"},
		{"void", exit.Usage, "ksnoop: there is no type \"void\"\n"},
		{"devise *[2]", exit.Usage, "ksnoop: there is no type \"devise\": did you mean \"device\"?\n"},
		{"device[4294967295]", exit.Failure, "ksnoop: dump of struct device[4294967295]: type too large\n"},
		{"#x", exit.Usage, "ksnoop: \"#x\" is not the number of a type\n"},
		{"device|mode", exit.Usage, "ksnoop: dump takes one type, not 2: quote its name, as in 'struct file'\n"},
		{"device|-o|xml", exit.Usage, "ksnoop: --output is \"xml\": it must be text or json\n"},
		{"device|--indent|x", exit.Usage, "ksnoop: --indent is \"x\": it must be a number from 1 to 16, or tab\n"},
		{"device|--hex", exit.Failure, "ksnoop: read hexadecimal digits: invalid byte: U+006E 'n': two are a byte, as in 7f 45 4c 46 or 7f454c46\n"},
	} {
		var stdout, stderr bytes.Buffer
		args := append([]string{"ksnoop", "dump", "--btf", types}, strings.Split(tc.args, "|")...)
		require.Equal(t, tc.status, ksnoopStatus(args, strings.NewReader("none"), &stdout, &stderr), args)
		require.True(t, strings.HasPrefix(stderr.String(), tc.want), stderr.String())
		require.Empty(t, stdout.String())
	}
}

// TestDumpRest verifies that dump reports input that does not belong to the value.
func TestDumpRest(t *testing.T) {
	integer := &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed}
	b, err := btf.NewBuilder([]btf.Type{
		&btf.Typedef{Name: "number", Type: integer},
		&btf.Struct{Name: "list", Size: 4, Members: []btf.Member{
			{Name: "n", Type: integer}, {Name: "items", Type: &btf.Array{Type: integer, Index: integer}, Offset: 32},
		}},
	}, nil)
	require.NoError(t, err)
	raw, err := b.Marshal(nil, nil)
	require.NoError(t, err)
	const four = "\x01\x00\x00\x00"
	const maxInput = 64 << 20
	for _, tc := range []struct{ line, input, stderr string }{
		{"dump|number", four, ""},
		{"dump|number", four + "abc", "ksnoop: the value ends after 4 bytes: 3 more bytes of the input are not shown\n"},
		{"dump|number|--hex", "01 00 00 00 ff", "ksnoop: the value ends after 4 bytes: 1 more byte of the input is not shown\n"},
		{"dump|number|-o|json", four + four, "ksnoop: the value ends after 4 bytes: 4 more bytes of the input are not shown\n"},
		{"dump|list", four + four + four, ""}, // takes all the input
		{"dump|number", "\x01\x00", ""},       // the text format marks the value as cut
		{"dump|number", strings.Repeat("x", maxInput), "ksnoop: the value ends after 4 bytes: 67108860 more bytes of the input are not shown\n"},
		{"dump|number", strings.Repeat("x", maxInput+1), "ksnoop: the value ends after 4 bytes: more than 67108860 bytes of the input are not shown\n"},
		{"dump|number|--hex", "0x0" + strings.Repeat("0", maxInput), "ksnoop: the value ends after 4 bytes: more than 33554427 bytes of the input are not shown\n"},
	} {
		status, stdout, stderr := withTypes(t, raw, tc.line, tc.input)
		require.Zero(t, status, stderr)
		require.NotEmpty(t, stdout)
		require.Equal(t, tc.stderr, stderr)
	}
}
