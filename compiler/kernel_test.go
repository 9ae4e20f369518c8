package compiler

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/cilium/ebpf/btf"

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
	enums  map[string]uint64 // enumerators
	funcs  []*cFunction
	// numbers are the names of all types that a number can be cast to.
	numbers []string
	globals map[string]uint64 // addresses; BTF has no types of them
	btf     *btf.Spec
	symbols *kallsyms.Table
	tried   []*spec.Trace
}

type cFunction struct {
	name   string
	params []cParam
	result *cType // nil: void
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

// place gives functions and variables their addresses.
func (k *kernel) place() (err error) {
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

// name makes types known to casts.
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

// passed is a type for a parameter or a result.
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
	}
	return k.pointer()
}

// load makes BTF of the types and reads it back.
func (k *kernel) load() error {
	var types []btf.Type
	for _, t := range append(k.scalars, k.records...) {
		types = append(types, t.as)
	}
	for _, fn := range k.funcs {
		var params []btf.FuncParam
		for _, p := range fn.params {
			params = append(params, param(p.name, p.typ.as))
		}
		result := btf.Type(&btf.Void{})
		if fn.result != nil {
			result = fn.result.as
		}
		types = append(types, function(fn.name, result, params...))
	}
	types = append(types, &btf.Struct{Name: "task_struct", Size: 48, Members: []btf.Member{commMember}})
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

// words is a value of a type as it is passed: what its bytes do not fill is
// anything.
func (k *kernel) words(t *cType) []byte {
	b := make([]byte, (t.size+7)&^7)
	k.mem.noise(b)
	k.mem.fill(b, t)
	return b
}

// arguments are values for all parameters.
func (fn *cFunction) arguments(k *kernel) [][]byte {
	var args [][]byte
	for _, p := range fn.params {
		args = append(args, k.words(p.typ))
	}
	return args
}

// returned is a result: its words, and for a record that the caller made room
// for the address of that.
func (fn *cFunction) returned(k *kernel) []byte {
	switch {
	case fn.result == nil:
		return nil
	case fn.result.inMemory():
		return binary.LittleEndian.AppendUint64(nil, k.mem.pointer(fn.result))
	}
	return k.words(fn.result)
}

// inWords says whether arguments and result are in registers and stack words
// wherever records of two words are.
func (fn *cFunction) inWords() bool {
	return (fn.result == nil || !fn.result.inMemory()) &&
		!slices.ContainsFunc(fn.params, func(p cParam) bool { return p.typ.size > 16 })
}

// inMemory says whether a record is passed in memory (System V ABI, 3.2.3).
func (t *cType) inMemory() bool {
	return t.kind == cRecord && (t.size > 16 || t.unaligned(0))
}
