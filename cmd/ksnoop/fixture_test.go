package main

import (
	"bytes"
	"strings"
	"testing"
)

// ksnoop runs a command line with the fixture's types. Its words are separated by |.
func ksnoop(t testing.TB, types, line string) (status int, stdout, stderr string) {
	words := strings.Split(line, "|")
	args := append([]string{"ksnoop", words[0], "--btf", types}, words[1:]...)
	var out, errors bytes.Buffer
	status = ksnoopStatus(args, strings.NewReader(""), &out, &errors)
	return status, out.String(), errors.String()
}
