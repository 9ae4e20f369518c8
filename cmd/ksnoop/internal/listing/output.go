package listing

import (
	"bytes"
	"fmt"
	"io"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// jsonVersion changes if a member of the JSON changes its meaning.
const jsonVersion = 1

// Formats are the formats of listings and of dump, the default first.
var Formats = []string{"text", "json"}

// output collects what a command prints: text, or a JSON object on each line.
type output struct {
	text  bytes.Buffer
	json  bool
	width int  // of the terminal, or 0
	apart bool // whether an empty line comes before the next one
}

// output returns an empty output, and prepares stdout for it.
func (o *ListOptions) output(stdout io.Writer) *output {
	out := newOutput(o.Format, stdout)
	if !out.json {
		term.SetColor(stdout, o.Color)
	}
	return out
}

func newOutput(format string, stdout io.Writer) *output {
	return &output{json: format == "json", width: term.WidthOf(stdout)}
}

// line adds a line, whose continuations are indented, or its object.
func (o *output) line(text string, indent int, object any) {
	if o.json {
		o.object(object)
		return
	}
	o.between(o.apart)
	o.apart = false
	fmt.Fprintln(&o.text, render.Wrap(text, o.width, indent))
}

// block adds lines with an empty one around them, or their object.
func (o *output) block(text string, object any) {
	if o.json {
		o.object(object)
		return
	}
	o.between(true)
	o.apart = true
	o.text.WriteString(text)
}

// between adds an empty line if the next text must be apart from what there is.
func (o *output) between(apart bool) {
	if apart && o.text.Len() > 0 {
		o.text.WriteByte('\n')
	}
}

func (o *output) object(object any) { o.text.Write(render.AppendJSON(nil, object)) }

func (o *output) flush(stdout io.Writer, what string) error {
	if _, err := o.text.WriteTo(stdout); err != nil {
		return fmt.Errorf("write %s: %w", what, err)
	}
	return nil
}

// functionObject is a function or a tracepoint as JSON.
type functionObject struct {
	Type      string             `json:"type"` // function, tracepoint or iterator
	Version   int                `json:"version"`
	Name      btfdump.JSONString `json:"name"`
	Module    btfdump.JSONString `json:"module,omitempty"`
	Prototype btfdump.JSONString `json:"prototype,omitempty"`
	Args      []argument         `json:"args"`
	Return    btfdump.JSONString `json:"return,omitempty"`
	Attach    string             `json:"attach,omitempty"`
	Reason    btfdump.JSONString `json:"reason,omitempty"`
}

// argument is an argument of a function. One without a name and with the type ... is
// for any number of arguments.
type argument struct {
	Name btfdump.JSONString `json:"name"`
	Type btfdump.JSONString `json:"type"`
}

func newFunctionObject(fn *compiler.Function) *functionObject {
	o := newPrototypeObject(fn.Name, fn.Type)
	o.Module, o.Prototype = btfdump.JSONString(fn.Module), btfdump.JSONString(declaration(fn))
	switch {
	case fn.Tracepoint:
		o.Type, o.Return = "tracepoint", ""
	case fn.Iterator:
		o.Type = "iterator"
	}
	return o
}

// newPrototypeObject returns a function of which only the name is known if fn is nil.
func newPrototypeObject(name string, fn *btf.Func) *functionObject {
	o := &functionObject{Type: "function", Version: jsonVersion, Name: btfdump.JSONString(name), Args: []argument{}}
	if fn == nil {
		return o
	}
	o.Prototype = btfdump.JSONString(btfdump.Decl(fn, fn.Name))
	proto, ok := fn.Type.(*btf.FuncProto)
	if !ok {
		return o
	}
	for i, p := range proto.Params {
		typ := btfdump.Decl(p.Type, "")
		if typ == "void" && i == len(proto.Params)-1 {
			if i == 0 {
				break
			}
			typ = "..."
		}
		o.Args = append(o.Args, argument{btfdump.JSONString(p.Name), btfdump.JSONString(typ)})
	}
	if result := btfdump.Decl(proto.Return, ""); result != "void" {
		o.Return = btfdump.JSONString(result)
	}
	return o
}

// eventObject is the event of a kprobe_events line as JSON.
type eventObject struct {
	Type    string             `json:"type"` // event
	Version int                `json:"version"`
	Name    btfdump.JSONString `json:"name"`
	Func    btfdump.JSONString `json:"func"`
	Format  btfdump.JSONString `json:"format"` // the content of its file format in tracefs
}

func newEventObject(t *spec.Trace, format string) *eventObject {
	return &eventObject{"event", jsonVersion, btfdump.JSONString(t.EventName()), btfdump.JSONString(t.Func.Name), btfdump.JSONString(format)}
}
