package runtime

import (
	"encoding/binary"
	"slices"
)

// Elements are those of an array that has an Elem, each with bytes of its own if
// it is a bitfield. Of an array that is cut they are what is there.
func (v *Value) Elements() []Value {
	var elements []Value
	for data := range slices.Chunk(v.Data, v.Elem.Load.Size) {
		if len(data) < v.Elem.Load.Size {
			break
		}
		if s := v.Elem.Load; s.Bits != 0 {
			var word [8]byte
			copy(word[:], data)
			bits := binary.LittleEndian.Uint64(word[:]) >> s.Shift & (1<<s.Bits - 1)
			data = binary.LittleEndian.AppendUint64(nil, bits)[:s.Size]
		}
		elements = append(elements, Value{Value: v.Elem, Data: data, Full: len(data)})
	}
	return elements
}
