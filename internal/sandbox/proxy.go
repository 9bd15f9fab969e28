package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/toolreg/toolreg/internal/webaddr"
)

const (
	maxRefusals = 20  // refused connections to remember
	maxTunnels  = 256 // concurrent requests of a program
	proxyWait   = 30 * time.Second
)

// inSandbox returns the environment adapted to the sandbox. With the port of a proxy, programs use it.
func inSandbox(env []string, port int) []string {
	out := slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return name == "TMPDIR" || port != 0 && strings.HasSuffix(strings.ToLower(name), "_proxy")
	})
	if port == 0 {
		return out
	}
	for _, name := range []string{"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"} {
		out = append(out, name+"=http://127.0.0.1:"+strconv.Itoa(port))
	}
	return append(out, "no_proxy=localhost,127.0.0.1,::1", "NO_PROXY=localhost,127.0.0.1,::1")
}

// proxy forwards connections of one sandboxed program to the hosts that it may reach. It
// resolves their names itself, because the program cannot reach a name server. A nil proxy
// has no refusals, because no connection reaches it.
type proxy struct {
	hosts     []host
	server    *http.Server
	transport *http.Transport
	work      sync.WaitGroup

	mu      sync.Mutex
	local   []net.Listener // of serveLocal
	closed  bool
	open    map[net.Conn]bool // both ends of tunnels
	running int
	refused []string
}

// serveProxy serves a listening socket and closes f. Entries that cannot be parsed do
// not match anything.
func serveProxy(f *os.File, entries []string) (*proxy, error) {
	defer f.Close()
	listener, err := net.FileListener(f)
	if err != nil {
		return nil, err
	}
	p := &proxy{open: map[net.Conn]bool{}}
	for _, entry := range entries {
		if h, err := parseHost(entry); err == nil {
			p.hosts = append(p.hosts, h)
		}
	}
	p.transport = &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) { return p.dial(ctx, address) },
	}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: proxyWait, ErrorLog: log.New(io.Discard, "", 0)}
	p.work.Go(func() { _ = p.server.Serve(listener) }) // it always ends with an error
	return p, nil
}

// serveLocal serves a listening socket whose connections go to a port of this machine, and
// closes f.
func (p *proxy) serveLocal(f *os.File, port int) error {
	defer f.Close()
	listener, err := net.FileListener(f)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.local = append(p.local, listener)
	p.mu.Unlock()
	i := slices.IndexFunc(p.hosts, func(h host) bool { return h.isLocal() && h.matches(h.name, port) })
	if i < 0 {
		return fmt.Errorf("port %d was not asked for", port)
	}
	address := net.JoinHostPort(p.hosts[i].name, strconv.Itoa(port))
	p.work.Go(func() {
		for {
			here, err := listener.Accept()
			if err != nil {
				return // closed
			}
			if !p.enter() {
				_ = here.Close()
				continue
			}
			go func() {
				defer p.leave()
				defer p.forget(here)
				d, err := p.dialer(address)
				if err != nil {
					return
				}
				there, err := d.Dial("tcp", address) // to this machine, so it does not take long
				if err != nil {
					return
				}
				defer p.forget(there)
				if p.remember(here, there) {
					relay(here, here, there)
				}
			}()
		}
	})
	return nil
}

// close ends all connections and waits for them.
func (p *proxy) close() {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.closed = true
	for conn := range p.open {
		_ = conn.Close()
	}
	for _, listener := range p.local {
		_ = listener.Close()
	}
	p.mu.Unlock()
	_ = p.server.Close()
	p.transport.CloseIdleConnections()
	p.work.Wait()
}

// refusals returns the connections that were refused.
func (p *proxy) refusals() []string {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.refused)
}

// ServeHTTP answers one request: CONNECT, or a request with an absolute URL.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !p.enter() {
		http.Error(w, "too many connections at once", http.StatusServiceUnavailable)
		return
	}
	defer p.leave()
	switch {
	case r.Method == http.MethodConnect:
		p.tunnel(w, r)
	case r.URL.Scheme == "http" && r.URL.Host != "":
		p.forward(w, r)
	default:
		http.Error(w, "this is a proxy", http.StatusBadRequest)
	}
}

func (p *proxy) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.running >= maxTunnels {
		return false
	}
	p.running++
	p.work.Add(1)
	return true
}

func (p *proxy) leave() {
	p.mu.Lock()
	p.running--
	p.mu.Unlock()
	p.work.Done()
}

// refusedError reports a connection that the profile does not allow.
type refusedError struct{ address string }

func (e *refusedError) Error() string {
	return "the sandbox does not allow connections to " + e.address
}

// dial connects to a host that the profile allows.
func (p *proxy) dial(ctx context.Context, address string) (net.Conn, error) {
	d, err := p.dialer(address)
	if err != nil {
		return nil, err
	}
	return d.DialContext(ctx, "tcp", address)
}

// dialer returns a dialer for an address that the profile allows.
func (p *proxy) dialer(address string) (*net.Dialer, error) {
	entries := p.entriesFor(address)
	if len(entries) == 0 {
		return nil, p.refuse(address)
	}
	return &net.Dialer{Timeout: proxyWait,
		ControlContext: func(_ context.Context, _, to string, _ syscall.RawConn) error {
			addr, err := netip.ParseAddrPort(to)
			if err != nil || !slices.ContainsFunc(entries, func(h host) bool { return h.mayReach(addr.Addr()) }) {
				return p.refuse(address + ", which leads to " + to)
			}
			return nil
		}}, nil
}

func (p *proxy) entriesFor(address string) []host {
	name, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil
	}
	name = webaddr.CanonicalHost(name)
	return slices.DeleteFunc(slices.Clone(p.hosts), func(h host) bool { return !h.matches(name, number) })
}

func (p *proxy) refuse(address string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.refused) < maxRefusals && !slices.Contains(p.refused, address) {
		p.refused = append(p.refused, address)
	}
	return &refusedError{address}
}

// answer sends the program the reason why it was not connected.
func answer(w http.ResponseWriter, err error) {
	if refused, ok := errors.AsType[*refusedError](err); ok {
		http.Error(w, refused.Error(), http.StatusForbidden)
		return
	}
	http.Error(w, fmt.Sprintf("connecting failed: %v", err), http.StatusBadGateway)
}

// forward sends one request without the headers that concern only the connection.
func (p *proxy) forward(w http.ResponseWriter, r *http.Request) {
	proxy := httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.Out.Host = r.In.URL.Host },
		Transport:    p.transport,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) { answer(w, err) },
		ErrorLog:     p.server.ErrorLog,
	}
	proxy.ServeHTTP(w, r)
}

// tunnel copies bytes between the program and a host until one of them ends.
func (p *proxy) tunnel(w http.ResponseWriter, r *http.Request) {
	there, err := p.dial(r.Context(), r.Host)
	if err != nil {
		answer(w, err)
		return
	}
	defer p.forget(there)
	here, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer p.forget(here)
	if !p.remember(here, there) {
		return
	}
	if _, err := io.WriteString(here, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	relay(here, buffered, there) // buffered has what was received with the request, then the rest
}

// relay copies bytes between two connections until both directions have ended. It reads what here
// sends from the reader from, which may have buffered a part of it.
func relay(here net.Conn, from io.Reader, there net.Conn) {
	var sending sync.WaitGroup
	sending.Go(func() {
		_, _ = io.Copy(there, from)
		closeWriting(there)
	})
	_, _ = io.Copy(here, there)
	closeWriting(here)
	sending.Wait()
}

// closeWriting ends one direction of a connection while the other stays open.
func closeWriting(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.CloseWrite()
	}
}

// remember registers connections for close; it returns false if close was called already.
func (p *proxy) remember(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		p.open[conn] = true
	}
	return !p.closed
}

func (p *proxy) forget(conn net.Conn) {
	_ = conn.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, conn)
}
