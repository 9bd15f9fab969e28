// limit does the least that an MCP client has to do: it starts servers, shakes
// hands, makes one request, copies the answer to stdout and ends the servers.
// Nothing is parsed, and no server's end is waited for.
//
//	limit version
//	limit list|call [-url URL] COMMAND ARG… [-- COMMAND ARG…]…
package main

import (
	"bufio"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// The messages.
const (
	hello   = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"limit","version":"1"}}}` + "\n"
	ready   = `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
	listing = `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}` + "\n"
	calling = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"tool_1","arguments":{}}}` + "\n"
)

func main() {
	args := os.Args[1:]
	request := listing
	switch args[0] {
	case "version":
		os.Stdout.WriteString("limit\n")
		return
	case "call":
		request = calling
	}
	if args[1] == "-url" {
		overHTTP(args[2], request)
		return
	}
	var wg sync.WaitGroup
	var turn sync.Mutex
	for rest := args[1:]; len(rest) > 0; {
		i := slices.Index(rest, "--")
		if i < 0 {
			i = len(rest)
		}
		argv := rest[:i]
		wg.Go(func() { ask(argv, request, &turn) })
		rest = rest[min(i+1, len(rest)):]
	}
	wg.Wait()
}

func check(err error) {
	if err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
}

func ask(argv []string, request string, turn *sync.Mutex) {
	path, err := exec.LookPath(argv[0])
	check(err)
	inReader, in, err := os.Pipe()
	check(err)
	out, outWriter, err := os.Pipe()
	check(err)
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	check(err)
	p, err := os.StartProcess(path, argv, &os.ProcAttr{Files: []*os.File{inReader, outWriter, null}})
	check(err)
	inReader.Close()
	outWriter.Close()
	r := bufio.NewReaderSize(out, 256<<10)
	_, err = in.WriteString(hello)
	check(err)
	copyLine(io.Discard, r)
	_, err = in.WriteString(ready + request)
	check(err)
	turn.Lock()
	copyLine(os.Stdout, r)
	turn.Unlock()
	check(p.Kill())
}

// copyLine copies one line as it comes.
func copyLine(w io.Writer, r *bufio.Reader) {
	for {
		part, err := r.ReadSlice('\n')
		_, _ = w.Write(part)
		if err != bufio.ErrBufferFull {
			check(err)
			return
		}
	}
}

func overHTTP(url, request string) {
	host, path, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "/")
	c, err := net.Dial("tcp", host)
	check(err)
	r := bufio.NewReaderSize(c, 256<<10)
	for _, m := range []string{hello, request} {
		_, err := c.Write([]byte("POST /" + path + " HTTP/1.1\r\nHost: " + host + "\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: " + strconv.Itoa(len(m)) + "\r\n\r\n" + m))
		check(err)
		length := 0
		for {
			line, err := r.ReadString('\n')
			check(err)
			if line == "\r\n" {
				break
			}
			if n, ok := strings.CutPrefix(line, "Content-Length: "); ok {
				length, err = strconv.Atoi(strings.TrimSpace(n))
				check(err)
			}
		}
		w := io.Writer(os.Stdout)
		if m == hello {
			w = io.Discard
		}
		_, err = io.CopyN(w, r, int64(length))
		check(err)
	}
}
