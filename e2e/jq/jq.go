// Package jq implements the part of the program jq that the tests and the
// examples of the documentation need.
package jq

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/itchyny/gojq"
)

// Run applies a filter to JSON values and writes each result on a line. Options
// are those of jq: -c changes nothing, -r writes strings as they are, -s makes
// one array of the values, -n leaves them to the filter's inputs.
func Run(w io.Writer, options, filter string, input []byte) error {
	values, err := parse(input)
	if err != nil {
		return err
	}
	query, err := gojq.Parse(filter)
	if err != nil {
		return fmt.Errorf("parse the filter: %w", err)
	}
	start := values
	switch {
	case has(options, 's'):
		start = []any{values}
	case has(options, 'n'):
		start = []any{nil}
	}
	code, err := gojq.Compile(query, gojq.WithInputIter(gojq.NewIter(values...)))
	if err != nil {
		return fmt.Errorf("compile the filter: %w", err)
	}
	for _, v := range start {
		if err := write(w, code.Run(v), has(options, 'r')); err != nil {
			return err
		}
	}
	return nil
}

func has(options string, letter byte) bool { return bytes.IndexByte([]byte(options), letter) >= 0 }

// parse reads JSON values and keeps all digits of numbers.
func parse(input []byte) ([]any, error) {
	values := []any{}
	for d := json.NewDecoder(bytes.NewReader(input)); ; {
		d.UseNumber()
		var v any
		switch err := d.Decode(&v); {
		case errors.Is(err, io.EOF):
			return values, nil
		case err != nil:
			return nil, fmt.Errorf("value %d: %w", len(values)+1, err)
		}
		values = append(values, v)
	}
}

func write(w io.Writer, results gojq.Iter, raw bool) error {
	for {
		v, ok := results.Next()
		if !ok {
			return nil
		}
		if err, ok := v.(error); ok {
			return err
		}
		text, isString := v.(string)
		if !raw || !isString {
			json, err := gojq.Marshal(v)
			if err != nil {
				return err
			}
			text = string(json)
		}
		if _, err := fmt.Fprintln(w, text); err != nil {
			return err
		}
	}
}
