package btfpart

import (
	"bytes"
	"iter"
)

// kinds are the words that C puts before names of types: none before some.
var kinds = map[string]uint32{
	"func":   1 << kindFunc,
	"struct": 1 << kindStruct,
	"union":  1 << kindUnion,
	"enum":   1<<kindEnum | 1<<kindEnum64,
	"":       1<<kindTypedef | 1<<kindInt | 1<<kindFloat,
}

// Names are the names in raw BTF of the types that stand behind a word: struct,
// union, enum or none; or of the functions: func.
func Names(raw []byte, of string) (iter.Seq[string], error) {
	b, err := parse(raw)
	if err != nil {
		return nil, err
	}
	if _, err := b.index(nil); err != nil {
		return nil, err
	}
	return func(yield func(string) bool) {
		for _, at := range b.offsets[1:] {
			k, _ := kind(word(b.types, at+4))
			name := word(b.types, at)
			if kinds[of]>>k&1 == 0 || name >= uint32(len(b.strings)) {
				continue
			}
			text := b.strings[name:]
			if !yield(string(text[:bytes.IndexByte(text, 0)])) {
				return
			}
		}
	}, nil
}
