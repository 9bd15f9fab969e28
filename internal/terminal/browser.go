package terminal

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"runtime"
	"strings"
	"time"
)

// Browser opens addresses in the person's browser. The zero value finds it by
// the system's usual way.
type Browser struct {
	// Environ is the environment of the program that opens addresses, "K=V";
	// nil means our own.
	Environ []string
}

// ErrNoBrowser tells that this system has no known way to open an address.
var ErrNoBrowser = errors.New("no program to open addresses with was found")

// opening is how long the program that opens an address is watched: one that
// fails does so soon, one that becomes the browser stays.
const opening = 700 * time.Millisecond

// Open opens an address: https, or http on this machine. It goes as one argument
// to one program, never through a shell, and never looks like an option. The
// browser outlives toolreg.
func (b Browser) Open(ctx context.Context, address string) error {
	if err := openable(address); err != nil {
		return err
	}
	environ := b.Environ
	if environ == nil {
		environ = os.Environ()
	}
	path := ""
	for _, kv := range environ {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	for _, argv := range openers() {
		program, err := lookPath(argv[0], path)
		if err != nil {
			continue
		}
		return launch(ctx, program, append(argv, address), environ)
	}
	return ErrNoBrowser
}

// openers lists programs that take an address, the best first.
func openers() [][]string {
	switch runtime.GOOS {
	case "darwin":
		return [][]string{{"/usr/bin/open"}}
	case "windows":
		return [][]string{{"rundll32", "url.dll,FileProtocolHandler"}}
	}
	return [][]string{{"xdg-open"}, {"wslview"}, {"x-www-browser"}, {"www-browser"}}
}

func openable(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Hostname() == "" || u.User != nil || strings.ContainsAny(address, "\\ \t\r\n\"'"):
		return errors.New("that is no plain web address")
	case u.Scheme == "https", u.Scheme == "http" && isLoopback(u.Hostname()):
		return nil
	}
	return errors.New("only https addresses are opened, and http on this machine")
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}

// launch starts the program in a session of its own, away from our terminal and
// our end, and tells of one that fails at once.
func launch(ctx context.Context, program string, argv, environ []string) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("opening the browser: %w", err)
	}
	defer null.Close()
	proc, err := os.StartProcess(program, argv, &os.ProcAttr{Env: environ, Files: []*os.File{null, null, null}, Sys: detached()})
	if err != nil {
		return fmt.Errorf("starting %s: %w", argv[0], err)
	}
	ended := make(chan error, 1)
	go func() { // ends with the program or with ours
		state, err := proc.Wait()
		if err == nil && !state.Success() {
			err = fmt.Errorf("%s failed (%s)", argv[0], state)
		}
		ended <- err
	}()
	timer := time.NewTimer(opening)
	defer timer.Stop()
	select {
	case err := <-ended:
		return err
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
