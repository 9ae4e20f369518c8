package main

import (
	"strconv"
	"strings"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/runtime"
)

// fetchType is the type that the kernel would give an argument of a
// kprobe_events line: as written, or as it is without one.
func fetchType(item *spec.Item, v *compiler.Value) spec.FetchType {
	switch t := item.Type; {
	case t != nil && strings.HasPrefix(t.Name, "%"):
		return spec.FetchType{Name: "string"}
	case t != nil:
		return *t
	case v.IsText():
		return spec.FetchType{Name: "string"}
	}
	return spec.FetchType{Name: v.Format}
}

// appendFetched appends an argument as the kernel prints it: the first of the
// values, or as many strings as an array of them has.
func appendFetched(dst []byte, values []runtime.Value, t *spec.FetchType, s *symbols) []byte {
	switch {
	case t.Count == 0:
		return appendOne(dst, &values[0], t, s)
	case t.IsText():
		for i := range values[:min(t.Count, len(values))] {
			dst = appendOne(append(dst, "{,"[min(i, 1)]), &values[i], t, s)
		}
		return append(dst, '}')
	}
	return appendArray(dst, &values[0], t, s)
}

func appendOne(dst []byte, v *runtime.Value, t *spec.FetchType, s *symbols) []byte {
	if v.Fault != compiler.NoFault {
		return append(dst, "(fault)"...)
	}
	dst = appendElement(dst, v.Data, t, s)
	if v.Cut {
		dst = append(dst, "..."...)
	}
	return dst
}

// appendArray appends an array of numbers. Of bitfields it has the numbers that
// they are in.
func appendArray(dst []byte, v *runtime.Value, t *spec.FetchType, s *symbols) []byte {
	if v.Fault != compiler.NoFault {
		return append(dst, "(fault)"...)
	}
	dst = append(dst, '{')
	size := max(1, v.Full/t.Count)
	for i := 0; i+size <= len(v.Data); i += size {
		if i > 0 {
			dst = append(dst, ',')
		}
		if f := t.Field; t.Name == "" {
			dst = strconv.AppendUint(dst, unsigned(v.Data[i:i+size])>>f.Offset&(1<<f.Width-1), 10)
		} else {
			dst = appendElement(dst, v.Data[i:i+size], t, s)
		}
	}
	if v.Cut {
		dst = append(dst, ",..."...)
	}
	return append(dst, '}')
}

// appendElement appends a value that is no array, or an element of one.
func appendElement(dst, data []byte, t *spec.FetchType, s *symbols) []byte {
	switch t.Name {
	case "symbol":
		return s.appendSized(dst, unsigned(data))
	case "symstr":
		return append(s.appendSized(append(dst, '"'), unsigned(data)), '"')
	case "char":
		return appendCharacter(dst, data)
	case "x8", "x16", "x32", "x64":
		return appendHex(dst, unsigned(data))
	case "s8", "s16", "s32", "s64":
		return strconv.AppendInt(dst, signed(data), 10)
	}
	if t.IsText() {
		return btfdump.AppendString(dst, data)
	}
	return strconv.AppendUint(dst, unsigned(data), 10)
}
