//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
)

// maxVisits is how often a person goes to log in before giving up.
const maxVisits = 3

// loggedIn does something, and logs in where toolreg says that this is needed:
// at the first use, when the server wants more than was granted, when the login
// is worth nothing any more.
func (p *person) loggedIn(do func() error) error {
	for tries := 1; ; tries++ {
		err := do()
		if tries == maxVisits || p.visits >= maxVisits || !strings.HasPrefix(p.scenario, "auth/") || !sourceFailed(err) {
			return err
		}
		// A login may be over before it was of use.
		if err := p.login(); err != nil && !sourceFailed(err) {
			return err
		}
	}
}

// sourceFailed reports whether toolreg ended with exit code 8, for a login that
// is needed among other reasons.
func sourceFailed(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() == 8
}

// login logs in as a person does whose browser runs on another machine: it
// visits the address that toolreg prints, and pastes the one it is sent to.
func (p *person) login() error {
	cmd := p.command("servers", "login", "s", "--no-browser")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "$ toolreg servers login s --no-browser")
	if err := cmd.Start(); err != nil {
		return err
	}
	visitErr := p.visit(stderr, stdin)
	if err := errors.Join(visitErr, cmd.Wait()); err != nil {
		return fmt.Errorf("toolreg servers login: %w", err)
	}
	return nil
}

// visit visits every address that toolreg prints on a line of its own and gives
// back where the visit leads.
func (p *person) visit(stderr io.Reader, stdin io.WriteCloser) error {
	defer stdin.Close()
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	lines := bufio.NewScanner(io.TeeReader(stderr, os.Stderr))
	for lines.Scan() {
		address := strings.TrimSpace(lines.Text())
		if !strings.HasPrefix(address, "http://") && !strings.HasPrefix(address, "https://") {
			continue
		}
		p.visits++
		resp, err := browser.Get(address)
		if err != nil {
			return err
		}
		resp.Body.Close()
		if _, err := fmt.Fprintln(stdin, resp.Header.Get("Location")); err != nil {
			return err
		}
	}
	return lines.Err()
}

// issuerOf returns the authorization server that an MCP server names, as a person
// looks it up who writes it into the settings: toolreg sends a secret to no other.
func issuerOf(server string) (string, error) {
	u, err := url.Parse(server)
	if err != nil {
		return "", err
	}
	root := u.Scheme + "://" + u.Host
	for _, path := range []string{u.Path, ""} {
		resp, err := http.Get(root + "/.well-known/oauth-protected-resource" + path)
		if err != nil {
			return "", err
		}
		var m struct {
			Servers []string `json:"authorization_servers"`
		}
		err = json.NewDecoder(resp.Body).Decode(&m)
		resp.Body.Close()
		if err == nil && len(m.Servers) > 0 {
			return m.Servers[0], nil
		}
	}
	return root, nil
}
