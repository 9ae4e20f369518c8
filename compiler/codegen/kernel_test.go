package codegen

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler/compilertest"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/kallsyms"
)

// kernel is a random kernel: types, functions and memory.
type kernel struct {
	*typeMaker
	mem    *heap
	rnd    *rand.Rand
	types  map[string]*cType // by the name in a cast
	errors map[string]uint64
	enums  map[string]uint64 // values of enumerators
	funcs  []*cFunction
	iters  []*cFunction
	meta   *cType // what the programs of iterators are told
	metaAt uint64 // its address
	// numbers has the names of all types that a number can be cast to.
	numbers []string
	globals map[string]uint64 // addresses; BTF does not describe their types
	btf     *btf.Spec
	symbols *kallsyms.Table
	tried   []*spec.Trace
}

type cFunction struct {
	name   string
	params []cParam
	result *cType // nil for void
	// iterator is set if programs run for each object; the first parameter is about the
	// iteration, and the second one is the object.
	iterator bool
}

type cParam struct {
	name string
	typ  *cType
}

func newKernel(rnd *rand.Rand) (*kernel, error) {
	k := &kernel{
		typeMaker: newTypes(rnd), mem: newHeap(rnd), rnd: rnd,
		types: map[string]*cType{"void": cNothing}, enums: map[string]uint64{},
		errors: map[string]uint64{"ENOENT": 2, "EAGAIN": 11, "EINVAL": 22},
	}
	for i := range 4 {
		k.funcs = append(k.funcs, k.function(fmt.Sprintf("f%d", i)))
	}
	for i, bits := range []int{8, 16, 32, 64} {
		size := 1 << i
		k.types[fmt.Sprintf("u%d", bits)] = cNumber("", "", size, false)
		k.types[fmt.Sprintf("s%d", bits)] = cNumber("", "", size, true)
	}
	k.iters = k.iterators()
	k.name(k.scalars...)
	k.name(k.records...)
	for name, t := range k.types {
		if t.scalar() {
			k.numbers = append(k.numbers, name)
		}
	}
	slices.Sort(k.numbers)
	return k, errors.Join(k.load(), k.place())
}

// place sets the addresses of functions and variables.
func (k *kernel) place() (err error) {
	k.metaAt = heapStart + uint64(k.mem.used)
	k.mem.used += k.meta.size + 8 // with the file that is written to
	var table strings.Builder
	for i, fn := range k.funcs {
		fmt.Fprintf(&table, "%x T %s\n", uint64(0xffff_ffff_8100_0000)+uint64(i)<<8, fn.name)
	}
	k.globals = map[string]uint64{"word": k.mem.object(k.types["u64"]), "thing": k.mem.object(k.records[0]), "gone": 0xffff_ffff_8200_0000}
	for _, name := range []string{"word", "thing", "gone"} {
		fmt.Fprintf(&table, "%x D %s\n", k.globals[name], name)
	}
	k.symbols, err = kallsyms.Read(strings.NewReader(table.String()), nil)
	return err
}

// name makes types available to casts.
func (k *kernel) name(types ...*cType) {
	for _, t := range types {
		k.types[t.name] = t
		for _, e := range t.enumerators {
			k.enums[e.Name] = e.Value
		}
		for _, m := range t.members {
			if td, ok := m.typ.as.(*btf.Typedef); ok {
				k.types[td.Name] = m.typ
			}
		}
	}
}

func (k *kernel) function(name string) *cFunction {
	fn := &cFunction{name: name}
	for i := range k.rnd.IntN(9) {
		fn.params = append(fn.params, cParam{string(rune('a' + i)), k.passed()})
	}
	if k.rnd.IntN(5) != 0 {
		fn.result = k.passed()
	}
	return fn
}

// passed returns a type for a parameter or a result.
func (k *kernel) passed() *cType {
	switch n := k.rnd.IntN(10); {
	case n < 3:
		return pick(k.rnd, k.scalars)
	case n < 5:
		if t := pick(k.rnd, k.records); t.size > 0 && t.size <= 40 {
			return t
		}
	case n < 8:
		return pointerTo(pick(k.rnd, k.records))
	case n < 9:
		return pointerTo(pick(k.rnd, []*cType{k.files.path, k.files.file, k.files.dentry}))
	}
	return k.pointer()
}

// load encodes the types as BTF and reads it back.
func (k *kernel) load() error {
	var types []btf.Type
	for _, t := range slices.Concat(k.scalars, k.records, k.files.all) {
		types = append(types, t.as)
	}
	for _, fn := range slices.Concat(k.funcs, k.iters) {
		var params []btf.FuncParam
		for _, p := range fn.params {
			params = append(params, compilertest.Param(p.name, p.typ.as))
		}
		result := btf.Type(&btf.Void{})
		if fn.result != nil {
			result = fn.result.as
		}
		name, iterator := strings.CutPrefix(fn.name, "iter:")
		if iterator {
			name, result = "bpf_iter_"+name, compilertest.Int
		}
		types = append(types, compilertest.Function(name, result, params...))
	}
	types = append(types, compilertest.TaskStruct())
	b, err := btf.NewBuilder(types, nil)
	if err != nil {
		return err
	}
	raw, err := b.Marshal(nil, nil)
	if err != nil {
		return err
	}
	k.btf, err = btf.LoadSpecFromReader(bytes.NewReader(raw))
	return err
}

// words returns a random value of a type as it is passed. The bytes beyond its
// size are random, too.
func (k *kernel) words(t *cType) []byte {
	b := make([]byte, (t.size+7)&^7)
	k.mem.noise(b)
	k.mem.fill(b, t)
	return b
}

// arguments returns random values for all parameters.
func (fn *cFunction) arguments(k *kernel) [][]byte {
	var args [][]byte
	for _, p := range fn.params {
		args = append(args, k.words(p.typ))
	}
	if fn.iterator {
		args[0] = le(k.metaAt)
	}
	return args
}

// returned returns a random result: its words, or the address of a structure for
// which the caller has reserved memory.
func (fn *cFunction) returned(k *kernel) []byte {
	switch {
	case fn.result == nil:
		return nil
	case fn.result.inMemory():
		return binary.LittleEndian.AppendUint64(nil, k.mem.pointer(fn.result))
	}
	return k.words(fn.result)
}

// inWords reports whether arguments and result are in registers and stack words
// on every architecture that passes structures of two words in that way.
func (fn *cFunction) inWords() bool {
	return (fn.result == nil || !fn.result.inMemory()) &&
		!slices.ContainsFunc(fn.params, func(p cParam) bool { return p.typ.size > 16 })
}

// inMemory reports whether a structure is passed in memory (System V ABI, 3.2.3).
func (t *cType) inMemory() bool {
	return t.kind == cRecord && (t.size > 16 || t.unaligned(0))
}
