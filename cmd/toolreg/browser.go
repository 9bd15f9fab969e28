package main

import (
	"errors"
	"net/url"
	"runtime"
	"strings"

	"github.com/toolreg/toolreg/internal/process"
)

var errNoBrowser = errors.New("no browser is known here")

// openBrowser opens an address in the person's browser. It is one word of an
// argv, never part of a line that a shell reads, and never looks like an option.
func (a *app) openBrowser(address string) error {
	if u, err := url.Parse(address); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return errors.New("only https and http addresses are opened")
	}
	argv, err := browser(runtime.GOOS, a.environ)
	if err != nil {
		return err
	}
	return process.Open(process.Spec{Argv: append(argv, address), Dir: "", Env: a.environ})
}

// browser returns the program that opens addresses: the one that BROWSER names,
// else that of the system.
func browser(goos string, environ []string) ([]string, error) {
	if own, ok := lookupEnv(environ, "BROWSER"); ok && own != "" && !strings.ContainsAny(own, " \t:;%'\"$") && !strings.HasPrefix(own, "-") {
		return []string{own}, nil
	}
	switch goos {
	case "darwin":
		return []string{"/usr/bin/open"}, nil
	case "windows":
		return []string{"rundll32", "url.dll,FileProtocolHandler"}, nil
	}
	for _, name := range []string{"DISPLAY", "WAYLAND_DISPLAY"} {
		if v, ok := lookupEnv(environ, name); ok && v != "" {
			return []string{"xdg-open"}, nil
		}
	}
	return nil, errNoBrowser // xdg-open would take the terminal for a text browser
}
