// Package schema checks that the JSON that ksnoop prints conforms to the schemas
// of docs.
//
//	s, err := schema.Strict("docs/trace.schema.json")
//	err = s.Lines(text)
package schema

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A Schema describes the valid lines of JSON.
type Schema struct{ compiled *jsonschema.Schema }

// Read reads a schema as it is published, for readers of the lines. It accepts
// members and types that a later version may add.
func Read(path string) (*Schema, error) {
	doc, err := load(path)
	if err != nil {
		return nil, err
	}
	return compile(path, doc)
}

// Strict reads a schema for the program that prints the lines. A member or a
// type that the schema does not name is an error.
func Strict(path string) (*Schema, error) {
	doc, err := load(path)
	if err != nil {
		return nil, err
	}
	closeAll(doc)
	return compile(path, doc)
}

func load(path string) (any, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	doc, err := jsonschema.UnmarshalJSON(f)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return doc, nil
}

// compile returns an error if doc does not conform to the metaschema.
func compile(path string, doc any) (*Schema, error) {
	c := jsonschema.NewCompiler()
	if err := c.AddResource(path, doc); err != nil {
		return nil, err
	}
	compiled, err := c.Compile(path)
	return &Schema{compiled}, err
}

// closeAll allows each object, at any depth, only the members that its schema
// names, unless the schema has additionalProperties. It makes later, the schema
// of lines with unknown types, false.
func closeAll(schema any) {
	switch s := schema.(type) {
	case map[string]any:
		if _, open := s["additionalProperties"]; s["type"] == "object" && !open {
			s["unevaluatedProperties"] = false
		}
		for name, below := range s {
			if name == "later" {
				s[name] = false
				continue
			}
			closeAll(below)
		}
	case []any:
		for _, below := range s {
			closeAll(below)
		}
	}
}

// Lines returns an error for the first line that does not conform to the
// schema, or if there is no line. Of lines that differ in numbers alone, as those of a
// flood of events do, it checks the first.
func (s *Schema) Lines(text string) error {
	seen, n := map[string]bool{}, 0
	for line := range strings.Lines(text) {
		n++
		shape := withoutNumbers(line)
		if seen[shape] {
			continue
		}
		seen[shape] = true
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
		if err == nil {
			err = s.compiled.Validate(value)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w\n%s", n, err, line)
		}
	}
	if n == 0 {
		return errors.New("there is no line")
	}
	return nil
}

// withoutNumbers returns a text with 0 for each decimal or hexadecimal number.
func withoutNumbers(text string) string {
	short := make([]byte, 0, len(text))
	inside := false
	for i := range len(text) {
		digit := text[i] >= '0' && text[i] <= '9'
		switch inside = digit || inside && (text[i] >= 'a' && text[i] <= 'f' || text[i] == 'x'); {
		case !inside:
			short = append(short, text[i])
		case digit && (len(short) == 0 || short[len(short)-1] != '0'):
			short = append(short, '0')
		}
	}
	return string(short)
}
