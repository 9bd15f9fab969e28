// mcpbench is both ends of a measurement of MCP clients: a server that answers
// as soon as it can, and the limit for a client, which starts servers, shakes
// hands, makes one request and prints the answer without looking at it.
//
//	mcpbench server [flags]               a server over stdio, or over HTTP with -http
//	mcpbench limit [-url U] [-call] COMMAND ARG… [-- COMMAND ARG…]…
//	mcpbench memory COMMAND ARG…          the most memory that a command had, in MiB
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

func main() {
	if len(os.Args) < 2 {
		fail("usage: mcpbench server|limit|memory …")
	}
	switch os.Args[1] {
	case "server":
		serve(os.Args[2:])
	case "limit":
		limit(os.Args[2:])
	case "memory":
		memory(os.Args[2:])
	default:
		fail("usage: mcpbench server|limit|memory …")
	}
}

func fail(args ...any) {
	fmt.Fprintln(os.Stderr, args...)
	os.Exit(1)
}

// server answers what a client asks.
type server struct {
	tools, schema, result int
	delay                 time.Duration
	deaf, ignore          bool
}

func serve(args []string) {
	s := server{}
	flags := flag.NewFlagSet("server", flag.ExitOnError)
	flags.IntVar(&s.tools, "tools", 10, "tools of the listing")
	flags.IntVar(&s.schema, "schema", 0, "about so many bytes of schema for each")
	flags.IntVar(&s.result, "result", 10, "bytes of a result")
	flags.DurationVar(&s.delay, "delay", 0, "before the first answer; over HTTP before each")
	flags.BoolVar(&s.deaf, "deaf", false, "answer nothing")
	flags.BoolVar(&s.ignore, "ignore", false, "do not answer unknown methods")
	address := flags.String("http", "", "serve HTTP there and print the URL")
	_ = flags.Parse(args) // exits
	if *address != "" {
		s.serveHTTP(*address)
	}
	time.Sleep(s.delay)
	in, out := bufio.NewReaderSize(os.Stdin, 1<<16), bufio.NewWriterSize(os.Stdout, 1<<16)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		if answer := s.answer(line); len(answer) > 0 && !s.deaf {
			out.Write(answer)
			out.WriteByte('\n')
			out.Flush()
		}
	}
}

func (s server) serveHTTP(address string) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		fail(err)
	}
	fmt.Printf("http://%s/mcp\n", l.Addr())
	fail(http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		time.Sleep(s.delay)
		if answer := s.answer(body); len(answer) > 0 {
			w.Header().Set("Content-Type", "application/json")
			w.Write(answer)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	})))
}

func (s server) answer(line []byte) []byte {
	var m struct {
		ID     json.RawMessage
		Method string
	}
	if json.Unmarshal(line, &m) != nil || len(m.ID) == 0 {
		return nil
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"jsonrpc":"2.0","id":%s,`, m.ID)
	switch m.Method {
	case "initialize":
		b.WriteString(`"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"bench","version":"1"}}}`)
	case "tools/list":
		b.WriteString(`"result":{"tools":[`)
		for i := range s.tools {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `{"name":"tool_%d","description":"Does things.","inputSchema":{"type":"object","properties":{`, i)
			for j := range max(1, s.schema/80) {
				if j > 0 {
					b.WriteByte(',')
				}
				fmt.Fprintf(&b, `"param_%d":{"type":"string","description":"one of the params of it"}`, j)
			}
			b.WriteString(`}}}`)
		}
		b.WriteString(`]}}`)
	case "tools/call":
		fmt.Fprintf(&b, `"result":{"content":[{"type":"text","text":"%s"}]}}`, strings.Repeat("x", s.result))
	default:
		if s.ignore {
			return nil
		}
		b.WriteString(`"error":{"code":-32601,"message":"no such method"}}`)
	}
	return b.Bytes()
}

// The messages of the limit. Nothing of an answer is parsed.
const (
	hello   = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"limit","version":"1"}}}`
	ready   = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	listing = `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}`
	calling = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"tool_0","arguments":{}}}`
)

func limit(args []string) {
	flags := flag.NewFlagSet("limit", flag.ExitOnError)
	url := flags.String("url", "", "of a server over HTTP")
	call := flags.Bool("call", false, "call a tool instead of listing them")
	_ = flags.Parse(args) // exits
	request := listing
	if *call {
		request = calling
	}
	if *url != "" {
		for _, m := range []string{hello, ready, request} {
			resp, err := http.Post(*url, "application/json", strings.NewReader(m))
			if err != nil {
				fail(err)
			}
			if m != request {
				io.Copy(io.Discard, resp.Body)
			} else {
				io.Copy(os.Stdout, resp.Body)
			}
			resp.Body.Close()
		}
		return
	}
	var commands [][]string
	for rest := flags.Args(); len(rest) > 0; {
		i := slices.Index(rest, "--")
		if i < 0 {
			i = len(rest)
		}
		commands = append(commands, rest[:i])
		rest = rest[min(i+1, len(rest)):]
	}
	answers := make([][]byte, len(commands))
	var wg sync.WaitGroup
	for i, argv := range commands {
		wg.Go(func() { answers[i] = ask(argv, request) })
	}
	wg.Wait()
	for _, a := range answers {
		os.Stdout.Write(a)
	}
}

func ask(argv []string, request string) []byte {
	cmd := exec.Command(argv[0], argv[1:]...)
	in, err := cmd.StdinPipe()
	if err != nil {
		fail(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		fail(err)
	}
	if err := cmd.Start(); err != nil {
		fail(err)
	}
	r := bufio.NewReaderSize(out, 1<<20)
	fmt.Fprintln(in, hello)
	if _, err := r.ReadBytes('\n'); err != nil {
		fail(err)
	}
	fmt.Fprintf(in, "%s\n%s\n", ready, request)
	answer, err := r.ReadBytes('\n')
	if err != nil {
		fail(err)
	}
	in.Close()
	cmd.Wait()
	return answer
}

// memory looks at the peak that the kernel keeps while the command runs: what
// is left of it at its end counts its servers too.
func memory(argv []string) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		fail(err)
	}
	peak := ""
	ended := make(chan error)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			if err != nil {
				fail(err)
			}
			var kilobytes float64
			fmt.Sscanf(peak, "VmHWM: %f", &kilobytes)
			fmt.Printf("%.0f\n", kilobytes/1024)
			return
		case <-time.After(time.Millisecond):
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(status)) {
			if strings.HasPrefix(line, "VmHWM:") {
				peak = line
			}
		}
	}
}
