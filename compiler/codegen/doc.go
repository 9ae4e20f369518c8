// Package codegen turns the probes of a plan into a [compiler.Unit]: it lays out
// their records and generates maps, instructions and attachments. It decides
// nothing; package resolve does.
package codegen
