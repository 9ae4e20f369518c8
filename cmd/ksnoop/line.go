package main

import "github.com/urfave/cli/v2"

// line is what a command line says, and what the process was like, that the cli
// package knows nothing of.
type line struct {
	command []string // behind --, with its arguments
	files   []string // of -f, each time that it is given
	own     inherited
}

// lineKey is where the application keeps it.
const lineKey = "line"

func lineOf(c *cli.Context) *line { return lineIn(c.App) }

func lineIn(app *cli.App) *line { return app.Metadata[lineKey].(*line) }
