package main

import (
	"strings"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// target completes the function, or the tracepoint, that begins at a place.
func (c *specWord) target(at int, bare bool) {
	c.at = at
	more := []string{"("}
	if bare {
		more = nil
	}
	module, name, ok := strings.Cut(c.word[at:], ":")
	if ok {
		c.at += len(module) + 1
	}
	switch {
	case module == "tp" && ok:
		c.tracepoints(name, more)
	case ok && module == "vmlinux":
		c.functions(c.source.kernel(), name, more)
	case ok:
		c.functions(c.source.module(module), name, more)
	default:
		c.functions(c.source.kernel(), module, more)
		c.prefixes(module, more)
	}
}

// prefixes completes what stands before a colon, and functions of modules if the
// kernel has none of such a name.
func (c *specWord) prefixes(name string, more []string) {
	none := len(c.found) == 0 && name != ""
	c.add("tp:", "tracepoints")
	for _, m := range c.source.modules() {
		if name != "" {
			c.add(m+":", "module")
		}
		if none {
			c.functions(c.source.module(m), name, more)
		}
	}
}

func (c *specWord) functions(types *names, prefix string, more []string) {
	if types == nil {
		return
	}
	last := ""
	types.of(prefix, func(name string, _ uint32) {
		if name != last && spec.IsName(name) && !strings.HasPrefix(name, "__bpf_trace_") {
			c.add(name, "", more...)
		}
		last = name
	}, kindFunc)
}

// tracepointType is before a tracepoint's name in the name of its type.
const tracepointType = "btf_trace_"

func (c *specWord) tracepoints(prefix string, more []string) {
	for _, types := range c.all() {
		types.of(tracepointType+prefix, func(name string, _ uint32) {
			c.add(strings.TrimPrefix(name, tracepointType), "", more...)
		}, kindTypedef)
	}
}

// all is the types of the kernel and of all modules.
func (c *specWord) all() []*names {
	all := []*names{c.source.kernel()}
	for _, m := range c.source.modules() {
		if types := c.source.module(m); types != nil {
			all = append(all, types)
		}
	}
	return all
}

// call finds what a target has; nil: there is no such target.
func (c *specWord) call(target string) *call {
	module, name, ok := strings.Cut(target, ":")
	if !ok {
		name = target
	}
	if name == "" || spec.IsGlob(name) {
		return nil
	}
	switch {
	case module == "tp" && ok:
		return c.tracepoint(name)
	case ok && module != "vmlinux":
		return functionCall(c.source.module(module), name)
	}
	if fn := functionCall(c.source.kernel(), name); fn != nil {
		return fn
	}
	for _, m := range c.source.modules() {
		if fn := functionCall(c.source.module(m), name); fn != nil {
			return fn
		}
	}
	return nil
}

func functionCall(types *names, name string) *call {
	if types == nil {
		return nil
	}
	id := types.find(name, kindFunc)
	if id == 0 {
		return nil
	}
	proto := types.ref(id)
	return &call{types: types, params: types.fields(proto), result: types.ref(proto)}
}

// tracepoint takes the names of the arguments from a function, as the type has
// none.
func (c *specWord) tracepoint(name string) *call {
	for _, types := range c.all() {
		if types.find(tracepointType+name, kindTypedef) == 0 {
			continue
		}
		for _, prefix := range []string{"__bpf_trace_", "trace_event_raw_event_", "perf_trace_"} {
			if fn := functionCall(types, prefix+name); fn != nil && len(fn.params) > 0 {
				return &call{types: types, params: fn.params[1:]}
			}
		}
		proto := types.fields(types.ref(types.bare(types.find(tracepointType+name, kindTypedef))))
		return &call{types: types, params: proto[min(1, len(proto)):]}
	}
	return nil
}
