// Command servers serves the listings in its arguments, each as an MCP server
// of its own at http://127.0.0.1:PORT/NAME, and beside them the usual test
// server as /kinds. It prints the URL and ends when stdin does.
//
//	go run ./testdata/servers testdata/servers/*.json
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolreg/toolreg/internal/mcptest"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "servers:", err)
		os.Exit(1)
	}
}

func run(files []string) error {
	mux := http.NewServeMux()
	for _, file := range files {
		h, err := mcptest.Handler("-listing", file)
		if err != nil {
			return err
		}
		mux.Handle("/"+strings.TrimSuffix(filepath.Base(file), ".json"), h)
	}
	kinds, err := mcptest.Handler()
	if err != nil {
		return err
	}
	mux.Handle("/kinds", kinds)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + l.Addr().String())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	return http.Serve(l, mux)
}
