package ui

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/webaddr"
)

// Browser opens URLs in the user's browser.
type Browser struct {
	// Environ is the environment of the program that opens URLs, "K=V". The
	// program is looked up in its PATH; its BROWSER overrides the default.
	Environ []string
}

// ErrNoBrowser is returned if this system has no known program that opens URLs.
var ErrNoBrowser = errors.New("no program to open URLs was found")

// watched is how long Open waits for the program that opens a URL to fail. Failures
// occur early, and a program that becomes the browser keeps running.
const watched = 700 * time.Millisecond

// Open opens a URL: https, or http on this machine. The URL is a single
// argument to the program, is never interpreted by a shell, and never looks
// like an option. The browser keeps running after toolreg ends.
func (b Browser) Open(ctx context.Context, address string) error {
	if webaddr.Check(address) != nil || strings.ContainsAny(address, "\"'`") { // openers are often shell scripts
		return errors.New("only https URLs are opened, and http URLs on this machine")
	}
	for _, argv := range b.openers(runtime.GOOS) {
		err := process.Open(ctx, process.Spec{Argv: append(argv, address), Env: b.Environ}, watched)
		if _, missing := errors.AsType[*process.StartError](err); !missing {
			return err
		}
	}
	return ErrNoBrowser
}

// openers returns commands that open a URL, the preferred one first.
func (b Browser) openers(goos string) [][]string {
	var out [][]string
	if program := b.variable("BROWSER"); program != "" && !strings.ContainsAny(program, " \t:;%'\"$") && !strings.HasPrefix(program, "-") {
		out = append(out, []string{program})
	}
	switch {
	case goos == "darwin":
		return append(out, []string{"/usr/bin/open"})
	case goos == "windows":
		return append(out, []string{"rundll32", "url.dll,FileProtocolHandler"})
	case b.variable("DISPLAY") != "" || b.variable("WAYLAND_DISPLAY") != "":
		// Without a display these would find browsers that need the terminal.
		out = append(out, []string{"xdg-open"}, []string{"x-www-browser"})
	}
	return append(out, []string{"wslview"})
}

func (b Browser) variable(name string) string {
	value, _ := expand.Find(b.Environ, name)
	return value
}
