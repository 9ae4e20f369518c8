package btfdump

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/cilium/ebpf/btf"
)

// jsonReader reads the JSON of a value back, token by token.
type jsonReader struct {
	*image
	dec *json.Decoder
	cut []string // the values of $cut
}

func newJSONReader(im *image, s []byte) *jsonReader {
	dec := json.NewDecoder(bytes.NewReader(s))
	dec.UseNumber()
	return &jsonReader{image: im, dec: dec}
}

func (r *jsonReader) value(t btf.Type, p spot) error {
	token, err := r.dec.Token()
	if err != nil {
		return err
	}
	switch v := token.(type) {
	case json.Delim:
		if v == '{' {
			return r.object(t, p)
		}
		return r.array(t, p)
	case bool:
		return r.set(p, t, big.NewInt(int64(strings.Index("ft", fmt.Sprint(v)[:1]))))
	case json.Number:
		return r.scalar(t, p, v.String())
	case string:
		return r.text(t, p, v)
	}
	return fmt.Errorf("unexpected %v", token)
}

func (r *jsonReader) scalar(t btf.Type, p spot, word string) error {
	v, err := scalarBits(t, p, word)
	if err != nil {
		return err
	}
	return r.set(p, t, v)
}

func (r *jsonReader) text(t btf.Type, p spot, s string) error {
	a, ok := btf.UnderlyingType(t).(*btf.Array)
	if !ok {
		return r.scalar(t, p, s)
	}
	if i, _ := arrayOfBytes(a); byteArray(i) == kindChars {
		// Bytes that are not UTF-8 are lost in JSON.
		for i := 0; i < len(s) && !strings.HasPrefix(s[i:], string(utf8.RuneError)); i++ {
			if err := r.bytes(p.add(i), []byte{s[i]}); err != nil {
				return err
			}
		}
		return nil
	}
	b, err := hex.DecodeString(s)
	if err != nil {
		return err
	}
	return r.bytes(p, b)
}

// object reads the rest of an object. Its names must be unique.
func (r *jsonReader) object(t btf.Type, p spot) error {
	seen := make(map[string]bool)
	for r.dec.More() {
		token, err := r.dec.Token()
		if err != nil {
			return err
		}
		name := token.(string)
		if seen[name] {
			return fmt.Errorf("two members %q", name)
		}
		seen[name] = true
		if name == cutKey {
			n, err := r.dec.Token()
			if err != nil {
				return err
			}
			r.cut = append(r.cut, fmt.Sprint(n))
			continue
		}
		m, at, ok := memberNamed(btf.UnderlyingType(t), p, name)
		if !ok {
			return fmt.Errorf("%v has no member %q", t, name)
		}
		if err := r.value(m.Type, at); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	_, err := r.dec.Token()
	return err
}

func (r *jsonReader) array(t btf.Type, p spot) error {
	a, ok := btf.UnderlyingType(t).(*btf.Array)
	if !ok {
		return fmt.Errorf("%v is no array", t)
	}
	for i := 0; r.dec.More(); i++ {
		if err := r.value(a.Type, p.add(i*sizeof(a.Type))); err != nil {
			return fmt.Errorf("[%s]: %w", strconv.Itoa(i), err)
		}
	}
	_, err := r.dec.Token()
	return err
}
