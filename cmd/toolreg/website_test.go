//go:build unix

package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"

	"github.com/rogpeppe/go-internal/testscript"
)

// websiteCommand runs "website DIR": a web server for the files in DIR, until the script
// ends. $SITE is its address, $SITEHOST the host and port, $SITEPORT the port. /headers
// returns the headers of the request, /count the number of requests, /to?URL
// redirects, and /api/ is that of [handleAPI].
func websiteCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: website DIR")
	}
	var requests atomic.Int64
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir(ts.MkAbs(args[0]))))
	mux.HandleFunc("/count", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, "%d requests", requests.Load()) })
	mux.HandleFunc("/headers", func(w http.ResponseWriter, r *http.Request) {
		for name := range r.Header {
			fmt.Fprintf(w, "%s: %s\n", name, r.Header.Get(name))
		}
	})
	mux.HandleFunc("/api/", handleAPI)
	mux.HandleFunc("/to", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.RawQuery, http.StatusFound) })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		mux.ServeHTTP(w, r)
	}))
	ts.Defer(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	_, port, err := net.SplitHostPort(host)
	ts.Check(err)
	ts.Setenv("SITE", server.URL)
	ts.Setenv("SITEHOST", host)
	ts.Setenv("SITEPORT", port)
}
