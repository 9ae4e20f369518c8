//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/e2e/tty"
)

const (
	columns = 106
	rows    = 26
	prompt  = "# "
)

// A typist types at a speed.
type typist struct{ betweenKeys, betweenCommands time.Duration }

// record runs a shell at a terminal, types commands at its prompts, and returns what the
// terminal has shown from the first prompt to the last one.
func (t typist) record(shell *exec.Cmd, commands []string) (*Recording, error) {
	terminal, err := tty.Start(shell, columns, rows)
	if err != nil {
		return nil, err
	}
	defer terminal.Close()
	begun := time.Now()
	prompts := make(chan struct{}, len(commands)+1)
	typed := make(chan error, 1)
	go func() { typed <- t.typeAll(terminal, commands, prompts) }()
	var events []Event
	var waits lastLine
	from, to := -1, 0
	for part := make([]byte, 64<<10); ; {
		n, err := terminal.Read(part)
		if errors.Is(err, unix.EIO) {
			break
		}
		if err != nil {
			return nil, err
		}
		events = append(events, Event{After: time.Since(begun), Text: string(part[:n])})
		if waits.prompts(string(part[:n])) {
			if to = len(events); from < 0 {
				from = to - 1
				events[from].Text = waits.text
			}
			select {
			case prompts <- struct{}{}:
			default:
				return nil, fmt.Errorf("the shell prompts more than the %d times that commands end", len(commands)+1)
			}
		}
	}
	close(prompts)
	if err := <-typed; err != nil {
		return nil, err
	}
	if err := shell.Wait(); err != nil && !shell.ProcessState.Exited() { // its status is that of the last command
		return nil, err
	}
	return &Recording{Width: columns, Height: rows, Events: events[from:to]}, nil
}

// lastLine is the line on which the cursor is.
type lastLine struct {
	text     string
	prompted bool // it has been a prompt
}

// prompts adds a text and reports whether the line has become a prompt. Some shells ask
// right after the prompt where the cursor is.
func (l *lastLine) prompts(text string) bool {
	if i := strings.LastIndexByte(text, '\n'); i >= 0 {
		*l, text = lastLine{}, text[i+1:]
	}
	l.text += text
	was := l.prompted
	l.prompted = was || strings.TrimSuffix(l.text, "\x1b[6n") == prompt
	return l.prompted && !was
}

// typeAll types each command at a prompt, and ends the shell at the last one.
func (t typist) typeAll(terminal io.StringWriter, commands []string, prompts <-chan struct{}) error {
	for i, command := range commands {
		if _, ok := <-prompts; !ok {
			return fmt.Errorf("the shell ended before it got command %d", i+1)
		}
		time.Sleep(t.betweenCommands)
		for _, key := range command + "\r" {
			if _, err := terminal.WriteString(string(key)); err != nil {
				return err
			}
			time.Sleep(t.betweenKeys)
		}
	}
	<-prompts
	_, err := terminal.WriteString("\x04")
	return err
}
