// webstub is the stub over HTTP. It prints its URL.
//
//	webstub -http ADDR [flags of stub]
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/toolreg/toolreg/testdata/bench/messages"
)

func main() {
	s := messages.Parse(os.Args[1:])
	l, err := net.Listen("tcp", s.Addr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("http://%s/mcp\n", l.Addr())
	_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		body, _ := io.ReadAll(r.Body)
		time.Sleep(s.Delay)
		if answer := s.Answer(body); answer != nil {
			w.Header().Set("Content-Type", "application/json")
			w.Write(answer)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	}))
}
