package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// The revisions of the clients.
const (
	legacy = "2025-11-25"
	modern = "2026-07-28"
)

const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"load","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`

const initialize = `"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"load","version":"1"}`

var errNoResult = errors.New("the answer has no result")

func message(method, params string, version string) []byte {
	if version == modern {
		params = strings.TrimPrefix(params+","+meta, ",")
	}
	return []byte(`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + params + "}}\n")
}

// stdioClient makes one request at a time of a server on its stdin.
type stdioClient struct {
	pid int
	in  io.Writer
	out *bufio.Reader
}

// startPiped starts a program and returns its stdin and stdout.
func startPiped(cmd *exec.Cmd) (io.WriteCloser, io.Reader) {
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		log.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		log.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		log.Fatal(err)
	}
	return in, out
}

func newStdio(command ...string) *stdioClient {
	cmd := exec.Command(command[0], command[1:]...)
	in, out := startPiped(cmd)
	c := &stdioClient{cmd.Process.Pid, in, bufio.NewReaderSize(out, 1<<20)}
	if err := c.request("initialize", initialize); err != nil {
		log.Fatal(command, err)
	}
	fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

func (c *stdioClient) request(method, params string) error {
	if _, err := c.in.Write(message(method, params, legacy)); err != nil {
		return err
	}
	for {
		line, err := c.out.ReadBytes('\n')
		if err != nil {
			return err
		}
		head := line[:min(len(line), 200)]
		if bytes.Contains(head, []byte(`"method"`)) {
			continue // a notification
		}
		return check(line)
	}
}

func check(answer []byte) error {
	if !bytes.Contains(answer, []byte(`"result"`)) || bytes.Contains(answer, []byte(`"isError":true`)) {
		return fmt.Errorf("%w: %.300s", errNoResult, answer)
	}
	return nil
}

// httpClient makes one request at a time over a connection of its own.
type httpClient struct {
	url, token, version, session string
	http                         *http.Client
	buf                          bytes.Buffer
}

func newHTTP(url, name, version string) *httpClient {
	return newHTTPWith(url, tokenOf(name), version)
}

func newHTTPWith(url, token, version string) *httpClient {
	c := &httpClient{url: url, token: token, version: version, http: &http.Client{Transport: &http.Transport{}}}
	if version == legacy {
		if err := c.request("initialize", initialize); err != nil {
			log.Fatal(err)
		}
		_ = c.post(context.Background(), []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`), "")
	}
	return c
}

func (c *httpClient) request(method, params string) error {
	if err := c.post(context.Background(), message(method, params, c.version), method); err != nil {
		return err
	}
	return check(c.buf.Bytes())
}

func (c *httpClient) post(ctx context.Context, body []byte, method string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Protocol-Version": {c.version}, "Authorization": {"Bearer " + c.token}}
	if c.version == modern {
		req.Header.Set("Mcp-Method", method)
		if method == "tools/call" {
			req.Header.Set("Mcp-Name", "tool_1")
		}
	} else if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if c.session == "" {
		c.session = resp.Header.Get("Mcp-Session-Id")
	}
	c.buf.Reset()
	_, err = c.buf.ReadFrom(resp.Body)
	return err
}

// end ends the session, if there is one, and closes the connection.
func (c *httpClient) end() {
	if req, err := http.NewRequest(http.MethodDelete, c.url, nil); err == nil && c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
		req.Header.Set("Authorization", "Bearer "+c.token)
		if resp, err := c.http.Do(req); err == nil {
			_ = resp.Body.Close()
		}
	}
	c.http.CloseIdleConnections()
}

// gateway is a process that listens.
type gateway struct {
	pid int
	url string
}

func newGateway(server []string) gateway {
	address := freeAddress()
	cmd := exec.Command("sdkgateway", append([]string{address}, server...)...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		log.Fatal(err)
	}
	return listening(cmd, address, "/")
}

// newServe starts toolreg serve with so many servers.
func newServe(n int, server []string) gateway {
	address := freeAddress()
	cmd := exec.Command("toolreg", "--quiet", "--settings", settings(n, server), "serve", "--source", "mcp:*", "--http", address, "--token-file", tokens())
	if err := cmd.Start(); err != nil {
		log.Fatal(err)
	}
	return listening(cmd, address, "/mcp")
}

func listening(cmd *exec.Cmd, address, path string) gateway {
	for range 500 {
		if c, err := net.Dial("tcp", address); err == nil {
			_ = c.Close()
			return gateway{cmd.Process.Pid, "http://" + address + path}
		}
		time.Sleep(10 * time.Millisecond)
	}
	log.Fatalf("%s does not listen", cmd)
	return gateway{}
}

// tokenOf returns the token of a client.
func tokenOf(name string) string { return "0123456789abcdef-" + name }

// tokens writes a file with the tokens of the clients that are measured together, and
// of one that behaves badly. It returns its path.
func tokens() string {
	var text strings.Builder
	for _, name := range append(clientNames(), badClient) {
		fmt.Fprintln(&text, name, tokenOf(name))
	}
	path := filepath.Join(os.Getenv("WORK"), "tokens")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		log.Fatal(err)
	}
	return path
}

// badClient is the name of the client that behaves badly.
const badClient = "bad"

// clientNames are the names of eight others.
func clientNames() []string { return strings.Fields("a b c d e f g h") }

func freeAddress() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// settings writes a file with n servers and returns its path.
func settings(n int, server []string) string {
	servers := map[string]any{}
	for i := range n {
		servers["s"+strconv.Itoa(i+1)] = map[string]any{"command": server[0], "args": server[1:], "trust": true}
	}
	text, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		log.Fatal(err)
	}
	path := filepath.Join(os.Getenv("WORK"), fmt.Sprintf("serve-%d-%d.json", n, len(server)))
	if err := os.WriteFile(path, text, 0o600); err != nil {
		log.Fatal(err)
	}
	return path
}
