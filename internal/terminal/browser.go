package terminal

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

// Browser opens addresses in the person's browser.
type Browser struct {
	// Environ is the environment of the program that opens addresses, "K=V". Its
	// PATH is where that is looked for, its BROWSER names another than the usual.
	Environ []string
}

// ErrNoBrowser is the error where this system has no known way to open an
// address.
var ErrNoBrowser = errors.New("no program to open addresses with was found")

// watched is how long the program that opens an address is watched: one that
// fails does so soon, one that becomes the browser stays.
const watched = 700 * time.Millisecond

// Open opens an address: https, or http on this machine. It goes as one argument
// to one program, never through a shell, and never looks like an option. The
// browser outlives toolreg.
func (b Browser) Open(ctx context.Context, address string) error {
	if webaddr.Check(address) != nil || strings.ContainsAny(address, "\"'`") { // openers are shell scripts, often
		return errors.New("only plain https addresses are opened, and http on this machine")
	}
	for _, argv := range b.openers(runtime.GOOS) {
		err := process.Open(ctx, process.Spec{Argv: append(argv, address), Env: b.Environ}, watched)
		if _, missing := errors.AsType[*process.StartError](err); !missing {
			return err
		}
	}
	return ErrNoBrowser
}

// openers lists programs that take an address, the best first.
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
		// Without a screen these find browsers that want the terminal.
		out = append(out, []string{"xdg-open"}, []string{"x-www-browser"})
	}
	return append(out, []string{"wslview"})
}

func (b Browser) variable(name string) string {
	value, _ := expand.Find(b.Environ, name)
	return value
}
