// Package codegen turns the probes of a plan into a [compiler.Unit]: it lays out
// their records and generates maps, instructions and attachments.
// Package resolve has made all decisions but one: conditions that need the stash, a
// second read or the duration come after the others.
package codegen
