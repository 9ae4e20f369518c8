// Package compiler turns parsed specs into specialised eBPF programs.
//
// The flow is [Resolve], which binds the names of a spec to the types and
// symbols of a [Target] and makes every decision, then [Compile], which lays
// out the records and generates the instructions:
//
//	trace, err := spec.Parse("ip_send_skb(skb->len > 100, skb, return)")
//	probe, err := compiler.Resolve(trace, target)
//	unit, err := compiler.Compile([]*compiler.Probe{probe}, compiler.Options{})
//
// Both are pure: they make no system call, so a spec can be compiled for any
// kernel whose BTF is at hand. Package runtime loads a [Unit].
package compiler
