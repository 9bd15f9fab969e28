package sandbox

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// listening returns a socket that listens on the loopback, and its address.
func listening(t *testing.T) (*os.File, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	return f, l.Addr().String()
}

// newProxy starts a proxy to hosts and returns it with its address.
func newProxy(t *testing.T, hosts ...string) (*proxy, string) {
	t.Helper()
	f, address := listening(t)
	p, err := serveProxy(f, hosts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	return p, address
}

// server is one of this machine that says hello, and its port.
func server(t *testing.T) (port string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "hello ", r.Host) }))
	t.Cleanup(s.Close)
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// say writes a request to an address and returns the first line and the body of the answer.
func say(t *testing.T, address, request string) (status, body string) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, strings.ReplaceAll(request, "\n", "\r\n")); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err.Error(), ""
	}
	data, _ := io.ReadAll(response.Body)
	return response.Status, strings.TrimSpace(string(data))
}

// Only requests to the hosts of the profile are forwarded, and each refusal has its reason.
func TestProxyForwardsToItsHosts(t *testing.T) {
	port := server(t)
	p, address := newProxy(t, "localhost:"+port, "not a host", "localhost:1")
	for _, c := range []struct{ request, status, body string }{
		{"GET http://localhost:" + port + "/ HTTP/1.1\nHost: other\nConnection: close\n\n", "200 OK", "hello localhost:" + port},
		{"GET http://127.0.0.1:" + port + "/ HTTP/1.1\nHost: localhost\n\n", "403 Forbidden", "the sandbox does not allow connections to 127.0.0.1:" + port},
		{"GET / HTTP/1.1\nHost: localhost:" + port + "\n\n", "400 Bad Request", "this is a proxy"},
		{"GET https://localhost:" + port + "/ HTTP/1.1\nHost: localhost\n\n", "400 Bad Request", "this is a proxy"},
		{"CONNECT other.example:443 HTTP/1.1\nHost: other.example:443\n\n", "403 Forbidden", "the sandbox does not allow connections to other.example:443"},
		{"CONNECT other.example HTTP/1.1\nHost: other.example\n\n", "403 Forbidden", "the sandbox does not allow connections to other.example"},
	} {
		if status, body := say(t, address, c.request); status != c.status || body != c.body {
			t.Errorf("%s: %s %q, want %s %q", c.request, status, body, c.status, c.body)
		}
	}
	if status, body := say(t, address, "CONNECT localhost:1 HTTP/1.1\nHost: localhost:1\n\n"); status != "502 Bad Gateway" || !strings.HasPrefix(body, "connecting failed: ") {
		t.Errorf("a closed port: %s %q", status, body)
	}
	want := []string{"127.0.0.1:" + port, "other.example:443", "other.example"}
	if diff := cmp.Diff(want, p.refusals()); diff != "" {
		t.Errorf("refusals (-want +got):\n%s", diff)
	}
}

// connect asks the proxy for a tunnel to a listener, and sends text with the request.
func connect(t *testing.T, text string) (p *proxy, near net.Conn, far net.Listener) {
	t.Helper()
	far, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { far.Close() })
	p, address := newProxy(t, far.Addr().String())
	if near, err = net.Dial("tcp", address); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close() })
	if _, err := fmt.Fprintf(near, "CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\n%s", far.Addr(), text); err != nil {
		t.Fatal(err)
	}
	return p, near, far
}

// A tunnel has what was sent with the request, and passes on that one side has ended.
func TestProxyTunnels(t *testing.T) {
	p, near, far := connect(t, "question")
	end, err := far.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	reader := bufio.NewReader(near)
	if _, err := http.ReadResponse(reader, &http.Request{Method: http.MethodConnect}); err != nil {
		t.Fatal(err)
	}
	_ = near.(*net.TCPConn).CloseWrite()
	if question, err := io.ReadAll(end); string(question) != "question" || err != nil {
		t.Errorf("the host received %q, %v", question, err)
	}
	if _, err := io.WriteString(end, "answer"); err != nil {
		t.Fatal(err)
	}
	_ = end.(*net.TCPConn).CloseWrite()
	if answer, err := io.ReadAll(reader); string(answer) != "answer" || err != nil {
		t.Errorf("the program received %q, %v", answer, err)
	}
	p.close()
	if len(p.open) > 0 || p.running != 0 {
		t.Errorf("%d connections and %d requests are left", len(p.open), p.running)
	}
}

// When the program has ended, its connections end, too.
func TestProxyEndsConnections(t *testing.T) {
	p, near, _ := connect(t, "")
	reader := bufio.NewReader(near)
	if line, err := reader.ReadString('\n'); !strings.Contains(line, "200") {
		t.Fatalf("%q, %v", line, err)
	}
	p.close()
	if _, err := io.Copy(io.Discard, reader); err != nil && !errors.Is(err, net.ErrClosed) {
		t.Log(err) // it may be reset
	}
	if p.enter() {
		t.Error("a request is accepted after the end")
	}
	(*proxy)(nil).close()
	if refused := (*proxy)(nil).refusals(); refused != nil {
		t.Errorf("without a proxy %q were refused", refused)
	}
}

// occupy makes the proxy have a number of requests, after it has none.
func occupy(p *proxy, n int) (release func()) {
	for {
		p.mu.Lock()
		if p.running == 0 {
			break
		}
		p.mu.Unlock()
		runtime.Gosched()
	}
	p.running = n
	p.mu.Unlock()
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.running -= n
	}
}

// Neither requests at once nor refusals use memory without limit.
func TestProxyLimits(t *testing.T) {
	port := server(t)
	p, address := newProxy(t, "localhost:"+port)
	request := "GET http://localhost:" + port + "/ HTTP/1.1\nHost: x\nConnection: close\n\n"
	for running, want := range map[int]string{maxTunnels: "503 Service Unavailable", maxTunnels - 1: "200 OK"} {
		release := occupy(p, running)
		if status, _ := say(t, address, request); status != want {
			t.Errorf("beside %d others: %s", running, status)
		}
		release()
	}
	for range 2 {
		for i := range maxRefusals + 1 {
			err := p.refuse(fmt.Sprintf("host%d:443", i))
			if want := fmt.Sprintf("the sandbox does not allow connections to host%d:443", i); err.Error() != want {
				t.Errorf("%v, want %s", err, want)
			}
		}
	}
	if refused := p.refusals(); len(refused) != maxRefusals || refused[maxRefusals-1] != fmt.Sprintf("host%d:443", maxRefusals-1) {
		t.Errorf("refusals %q", refused)
	}
}

// The owner of a name cannot lead the proxy to this machine.
func TestProxyChecksWhereNamesLead(t *testing.T) {
	p, _ := newProxy(t, "name.example", "other.example")
	d, err := p.dialer("name.example:80")
	if err != nil {
		t.Fatal(err)
	}
	for to, want := range map[string]bool{"93.184.215.14:80": true, "127.0.0.1:80": false, "[::1]:80": false, "169.254.169.254:80": false, "nowhere": false} {
		if err := d.ControlContext(t.Context(), "tcp", to, nil); (err == nil) != want {
			t.Errorf("name.example leads to %s: %v", to, err)
		} else if err != nil && err.Error() != "the sandbox does not allow connections to name.example:80, which leads to "+to {
			t.Error(err)
		}
	}
}

// A port of this machine that the profile names is served on the program's own loopback.
func TestProxyServesLocalPorts(t *testing.T) {
	port := server(t)
	number := 0
	fmt.Sscan(port, &number)
	p, _ := newProxy(t, "example.org:"+port, "localhost:"+port)
	f, address := listening(t)
	if err := p.serveLocal(f, number); err != nil {
		t.Fatal(err)
	}
	status, body := say(t, address, "GET / HTTP/1.1\nHost: here\nConnection: close\n\n")
	if status != "200 OK" || body != "hello here" {
		t.Errorf("%s %q", status, body)
	}
	release := occupy(p, maxTunnels)
	if status, _ := say(t, address, "GET / HTTP/1.1\nHost: here\n\n"); !strings.Contains(status, "EOF") && !strings.Contains(status, "reset") {
		t.Errorf("one too many: %s", status)
	}
	release()
	if status, _ := say(t, address, "GET / HTTP/1.1\nHost: here\nConnection: close\n\n"); status != "200 OK" {
		t.Errorf("after one too many: %s", status)
	}
	f, _ = listening(t)
	if err := p.serveLocal(f, number+1); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("port %d was not asked for", number+1)) {
		t.Errorf("another port: %v", err)
	}
	p.close()
	if _, err := net.Dial("tcp", address); err == nil {
		t.Error("the port is open after the end")
	}
}

// A program is told of the proxy by the variables that programs know.
func TestProxyVariables(t *testing.T) {
	got := strings.Join(inSandbox(nil, 8080), " ")
	for _, name := range []string{"http_proxy", "HTTPS_PROXY", "all_proxy"} {
		_, rest, ok := strings.Cut(got+" ", name+"=")
		address, _, _ := strings.Cut(rest, " ")
		if u, err := url.Parse(address); !ok || err != nil || u.Host != "127.0.0.1:8080" {
			t.Errorf("%s is %q, %v", name, address, err)
		}
	}
}

func TestLocalPorts(t *testing.T) {
	for _, c := range []struct {
		entries []string
		want    []int
	}{
		{[]string{"localhost:8080", "127.0.0.1:5432", "localhost:8080"}, []int{5432, 8080}},
		{[]string{"localhost"}, []int{80, 443}},
		{[]string{"127.0.0.2:1"}, []int{1}},
		{[]string{"localhost:*", "localhost:61080", "example.org:8080", "*.localhost:8080", "10.0.0.1:8080", "[::1]:8080", "a b"}, nil},
	} {
		if diff := cmp.Diff(c.want, localPorts(c.entries)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.entries, diff)
		}
	}
}
