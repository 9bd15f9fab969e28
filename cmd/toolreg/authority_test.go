//go:build unix

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/toolreg/toolreg/internal/mcptest"
)

// authorityCommand runs "authority [=NAME] flags…": an MCP server that requires a login
// and its authorization server, until the script ends. $MCP and $AS are their addresses;
// with a NAME they are $NAME_MCP and $NAME_AS. $AS/counts returns the number of requests
// of each kind, $AS/expire ends every access token. With --api, $MCP is an API.
func authorityCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: authority [=NAME] [flags…]")
	}
	prefix := ""
	if len(args) > 0 && args[0][0] == '=' {
		prefix, args = args[0][1:]+"_", args[1:]
	}
	mcp, as := startAuthority(args, ts.Check, ts.Defer)
	ts.Setenv(prefix+"MCP", mcp)
	ts.Setenv(prefix+"AS", as)
}

func startAuthority(args []string, check func(error), later func(func())) (mcp, as string) {
	a, err := mcptest.NewAuthority(args...)
	check(err)
	protected := a.MCP()
	if slices.Contains(args, "--api") {
		protected = a.API()
	}
	server, issuer := httptest.NewUnstartedServer(protected), httptest.NewUnstartedServer(a)
	a.Resource, a.Issuer = "http://"+server.Listener.Addr().String()+"/mcp", "http://"+issuer.Listener.Addr().String()
	if slices.Contains(args, "--legacy") {
		a.Issuer = strings.TrimSuffix(a.Resource, "/mcp")
	}
	server.Start()
	issuer.Start()
	later(func() {
		server.CloseClientConnections() // streams of programs that go on
		server.Close()
	})
	later(issuer.Close)
	return a.Resource, issuer.URL
}

// browse is the program mcp-browser. It follows an address as a browser would without a
// user who clicks anything, and appends its arguments to the file that BROWSED names.
func browse() int {
	if path := os.Getenv("BROWSED"); path != "" {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			fmt.Fprintln(f, os.Args[1:])
			err = f.Close()
		}
		if err != nil {
			return 1
		}
	}
	resp, err := http.Get(os.Args[1])
	if err != nil {
		return 1
	}
	defer resp.Body.Close()
	if _, err := io.Copy(os.Stdout, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		return 1
	}
	return 0
}
