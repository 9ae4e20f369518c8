// Package compiler defines the data that the phases of the compiler share.
// These phases turn parsed specs into specialised eBPF programs.
//
// Package resolve binds the names of specs to the types and symbols of a [Target]
// and makes every decision. Package codegen lays out the records of its [Probe]s
// and generates the instructions:
//
//	trace, err := spec.Parse("ip_send_skb(skb->len > 100, skb, return)")
//	plan, err := resolve.All([]*spec.Trace{trace}, target, resolve.Wishes{})
//	unit, err := codegen.Compile(plan.Probes, compiler.Options{})
//
// Both are pure: they make no system call, so a spec can be compiled for any
// kernel whose BTF is at hand. Package runtime loads a [Unit].
package compiler
