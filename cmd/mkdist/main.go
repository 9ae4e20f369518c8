// Mkdist makes what users install from built binaries: archives, packages with
// a bill of materials, and a container image. The same sources, version and time
// give the same bytes. The Makefile runs it:
//
//	mkdist [-dist DIR] [-source DIR] [-arches LIST] -version VERSION -time SECONDS packages
//	mkdist [-dist DIR] [-arches LIST] [-program NAME] [-ref NAME] -version VERSION -time SECONDS image
//
// The binaries are ksnoop-linux-ARCH and ksnoop-exporter-linux-ARCH in the directory that
// the results go to.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// dist describes what to make, and from what.
type dist struct {
	dir     string // directory of the binaries and the results
	source  string // directory of the repository
	version string // as git describe prints it
	time    time.Time
	arches  []string
	ref     string // name of the image
	program string // that the image holds
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mkdist:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	d, what, err := parse(args)
	if err != nil {
		return err
	}
	switch what {
	case "packages":
		err = d.packages()
	case "image":
		err = d.image()
	default:
		err = fmt.Errorf("make %q: it must be packages or image", what)
	}
	if err != nil {
		return err
	}
	return d.sums()
}

// parse parses the command line. The defaults are for go run -C.
func parse(args []string) (*dist, string, error) {
	d := &dist{}
	flags := flag.NewFlagSet("mkdist", flag.ContinueOnError)
	flags.StringVar(&d.dir, "dist", "../../dist", "directory of the binaries and the results")
	flags.StringVar(&d.source, "source", "../..", "the repository")
	flags.StringVar(&d.version, "version", "", "version, as git describes it")
	flags.StringVar(&d.ref, "ref", "", "name of the image (default: localhost/PROGRAM:latest)")
	flags.StringVar(&d.program, "program", "ksnoop", "program that the image holds: ksnoop or ksnoop-exporter")
	arches := flags.String("arches", "amd64,arm64", "architectures")
	seconds := flags.Int64("time", 0, "time of all files, in seconds since 1970")
	if err := flags.Parse(args); err != nil {
		return nil, "", err
	}
	if d.version == "" || *seconds == 0 || flags.NArg() != 1 {
		return nil, "", errors.New("want -version VERSION -time SECONDS, and packages or image")
	}
	d.ref = cmp.Or(d.ref, "localhost/"+d.program+":latest")
	d.time, d.arches = time.Unix(*seconds, 0).UTC(), strings.Split(*arches, ",")
	return d, flags.Arg(0), nil
}

// binary returns the path of ksnoop for an architecture.
func (d *dist) binary(arch string) string { return d.built("ksnoop", arch) }

// built returns the path of a built program.
func (d *dist) built(program, arch string) string {
	return filepath.Join(d.dir, program+"-linux-"+arch)
}
