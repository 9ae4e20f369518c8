package main

import (
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// helpVersion changes if a member of the description changes its meaning.
const helpVersion = 1

// helpObject describes ksnoop for programs, by docs/help.schema.json.
type helpObject struct {
	Type     string             `json:"type"`
	Version  int                `json:"version"`
	Ksnoop   btfdump.JSONString `json:"ksnoop"`
	Commands []commandObject    `json:"commands"`
	Options  []optionObject     `json:"options"` // of all commands
	Statuses []statusObject     `json:"statuses"`
	Language any                `json:"language,omitempty"`
}

type commandObject struct {
	Name        string         `json:"name"`
	Usage       string         `json:"usage"`
	Operands    string         `json:"operands"`
	Description string         `json:"description"`
	Options     []optionObject `json:"options"`
}

type optionObject struct {
	Name     string `json:"name"`
	Short    string `json:"short,omitempty"`
	Value    string `json:"value,omitempty"` // its name; "" if the option takes none
	Usage    string `json:"usage"`
	Default  string `json:"default,omitempty"`
	Category string `json:"category,omitempty"`
	Repeats  bool   `json:"repeats,omitempty"` // it may be given several times
}

type statusObject struct {
	Status int    `json:"status"`
	Means  string `json:"means"`
}

// newHelpObject describes a command, the language if the topic is spec, or everything.
func newHelpObject(app *cli.App, topic string) *helpObject {
	o := &helpObject{
		Type: "help", Version: helpVersion, Ksnoop: btfdump.JSONString(app.Version),
		Commands: []commandObject{}, Options: optionObjects(app.Flags), Statuses: statuses,
	}
	for _, c := range app.VisibleCommands() {
		if topic == "" || topic == c.Name {
			o.Commands = append(o.Commands, commandObject{c.Name, c.Usage, c.ArgsUsage, c.Description, optionObjects(c.VisibleFlags())})
		}
	}
	if topic == "" || topic == "spec" {
		o.Language = spec.Language
	}
	return o
}

func optionObjects(flags []cli.Flag) []optionObject {
	all := []optionObject{}
	for _, f := range flags {
		names := f.Names()
		documented := f.(cli.DocGenerationFlag)
		o := optionObject{Name: names[0], Default: documented.GetValue(), Category: f.(cli.CategorizableFlag).GetCategory()}
		if len(names) > 1 {
			o.Short = names[1]
		}
		o.Value, o.Usage = valueParts(documented.GetUsage())
		if o.Value == "" && takesValue(f) {
			o.Value = "VALUE"
		}
		if f, ok := f.(valued); ok {
			o.Repeats = f.value.repeats
		}
		all = append(all, o)
	}
	return all
}

// statuses are the exit statuses.
var statuses = []statusObject{
	{0, "success, also after SIGINT, SIGQUIT, SIGTERM or SIGHUP; with a command after --, its own status takes the place of 0: 128+N if signal N killed it"},
	{exit.Failure, "tracing or printing failed, an assertion of test is not ok, or a spec of check does not fit"},
	{exit.Usage, "the command line or a spec is wrong"},
	{4, "test has skipped every assertion"},
	{69, "this kernel lacks something that test needs"},
	{77, "test is not permitted"},
	{124, "the command of test took too long"},
	{exit.NotExecutable, "the command after -- cannot be executed"},
	{exit.NotFound, "the command after -- is not there"},
	{exit.Signal + int(syscall.SIGINT), "SIGINT arrived before everything was attached: nothing was traced"},
	{exit.Pipe, "the reader of standard output went away"},
	{exit.Signal + int(syscall.SIGTERM), "SIGTERM arrived before everything was attached: nothing was traced"},
}
