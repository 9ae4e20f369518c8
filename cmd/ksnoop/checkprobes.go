package main

import (
	"io"
	"os"
	"path/filepath"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/suite"
)

// probeFileHead begins a file of probes.
const probeFileHead = "ksnoop-probes "

// probeFileSubjects reads a file of probes; ok says that the name is that of
// one. All others are specs.
func probeFileSubjects(name string) (subjects []*checkSubject, ok bool, err error) {
	if !isProbeFile(name) {
		return nil, false, nil
	}
	text, err := readSpecs(name, nil)
	if err != nil {
		return nil, true, err
	}
	probes, err := suite.Parse(name, text)
	if err != nil {
		return nil, true, err
	}
	for _, a := range probes.Asserts {
		parts := []checkPart{partOf(a.Path)}
		text := suite.PathText(a.Path)
		if a.Other != nil {
			parts = append(parts, partOf([]*suite.Spec{a.Other}))
			text += " ~ " + a.Other.String()
		}
		subjects = append(subjects, &checkSubject{name: a.Name, text: text, parts: parts, from: a.From})
	}
	for _, m := range probes.Metrics {
		subjects = append(subjects, &checkSubject{name: m.Name, text: suite.PathText(m.Path), parts: []checkPart{partOf(m.Path)}, from: m.From})
	}
	for _, e := range probes.Evidence {
		subjects = append(subjects, &checkSubject{name: "evidence of " + e.Name, text: suite.PathText(e.Path), parts: []checkPart{partOf(e.Path)}, from: e.From})
	}
	for _, s := range subjects {
		s.unmet = func(target *compiler.Target, release string) string { return unmet(probes.Requires, target, release) }
	}
	return subjects, true, nil
}

// isProbeFile says whether a name is meant for a file of probes: it ends as those
// do, or there is a file that begins as one.
func isProbeFile(name string) bool {
	if filepath.Ext(name) == ".probes" {
		return true
	}
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, len(probeFileHead))
	_, err = io.ReadFull(f, head)
	return err == nil && string(head) == probeFileHead
}

// partOf is the functions of a spec, or of a stack.
func partOf(path []*suite.Spec) checkPart {
	var part checkPart
	for _, s := range path {
		part.functions = append(part.functions, s.AnyOf)
	}
	return part
}
