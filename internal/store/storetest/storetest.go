//go:build unix

package storetest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gomodule/redigo/redis"
)

// patience is how long a started server may take to answer. It only bounds a failure.
const patience = time.Minute

// T is the part of a test that is used.
type T interface {
	Helper()
	Fatal(args ...any)
	Skip(args ...any)
	Cleanup(f func())
	TempDir() string
}

// Server is a process of redis-server on a loopback port, which ends with the test.
type Server struct {
	Address string // HOST:PORT
	t       T
	args    []string
	process *exec.Cmd
	ended   chan struct{} // closed when the process has ended
}

// Start starts an empty server, with additional arguments. The test is skipped where
// redis-server is not installed.
func Start(t T, args ...string) *Server {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("redis-server is not installed")
	}
	s := &Server{t: t, args: args}
	for range 10 {
		s.Address = net.JoinHostPort("127.0.0.1", FreePort(t))
		if s.start() {
			t.Cleanup(s.Kill)
			return s
		}
	}
	t.Fatal("redis-server ends at its start")
	return nil
}

// FreePort returns a loopback port that no program uses. The system does not assign it to a
// connection before the caller's program listens there, as it may with a port from "127.0.0.1:0".
func FreePort(t T) string {
	t.Helper()
	for range 1000 {
		port := strconv.Itoa(10000 + rand.IntN(10000))
		if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port)); err == nil {
			_ = l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return ""
}

// URL returns the address as the value of serve.store.
func (s *Server) URL() string { return "redis://" + s.Address }

// Again starts the server, without its data, after [Server.Kill].
func (s *Server) Again() {
	s.t.Helper()
	if !s.start() {
		s.t.Fatal("redis-server ends at its start, or another program has got its port")
	}
}

// start reports whether the server has started, and neither ended nor lost its port to another
// program.
func (s *Server) start() bool {
	s.t.Helper()
	_, port, _ := net.SplitHostPort(s.Address)
	s.process = exec.Command("redis-server",
		append([]string{"--port", port, "--bind", "127.0.0.1", "--save", "",
			"--appendonly", "no", "--dir", s.t.TempDir(), "--repl-diskless-sync-delay", "0"},
			s.args...)...)
	s.process.Stderr = os.Stderr
	if err := s.process.Start(); err != nil {
		s.t.Fatal(err)
	}
	process, ended := s.process, make(chan struct{})
	s.ended = ended
	go func() {
		_ = process.Wait()
		close(ended)
	}()
	for deadline := time.Now().Add(patience); ; {
		answer, err := s.command("INFO", "server")
		switch {
		case err == nil && strings.Contains(answer, fmt.Sprintf("process_id:%d\r\n", s.process.Process.Pid)):
			return true
		case err == nil:
			s.Kill()
			return false
		case time.Now().After(deadline):
			s.t.Fatal("redis-server does not answer: ", err)
		}
		select {
		case <-ended:
			return false
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Kill ends the server at once.
func (s *Server) Kill() {
	_ = s.process.Process.Kill()
	<-s.ended
}

// Pause stops the server until [Server.Continue].
func (s *Server) Pause() { _ = s.process.Process.Signal(syscall.SIGSTOP) }

// Continue ends [Server.Pause].
func (s *Server) Continue() { _ = s.process.Process.Signal(syscall.SIGCONT) }

// Do sends a command and returns the answer: its text, or its
// lines for a list.
func (s *Server) Do(words ...string) string {
	s.t.Helper()
	answer, err := s.command(words...)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer
}

func (s *Server) command(words ...string) (string, error) {
	conn, err := redis.Dial("tcp", s.Address, redis.DialConnectTimeout(patience),
		redis.DialReadTimeout(patience), redis.DialWriteTimeout(patience))
	if err != nil {
		return "", err
	}
	defer conn.Close()
	answer, err := conn.Do(words[0], redis.Args{}.AddFlat(words[1:])...)
	switch answer := answer.(type) {
	case nil:
		return "", err
	case int64:
		return strconv.FormatInt(answer, 10), err
	case []any:
		lines, err := redis.Strings(answer, err)
		return strings.Join(lines, "\n"), err
	}
	return redis.String(answer, err)
}

// Proxy forwards connections to a server, and can break them.
type Proxy struct {
	Address string

	mu    sync.Mutex
	to    string
	cut   bool // nothing passes
	broke int  // how many times Break was called
	conns []net.Conn
}

// NewProxy returns a proxy to an address.
func NewProxy(t T, to string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Address: l.Addr().String(), to: to}
	var running sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); p.Break(); running.Wait() })
	running.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { p.serve(client) })
		}
	})
	return p
}

// URL returns the address as the value of serve.store.
func (p *Proxy) URL() string { return "redis://" + p.Address }

// Break ends the connections.
func (p *Proxy) Break() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
	p.broke++
}

// Swallow keeps connections open without forwarding anything, or ends that.
func (p *Proxy) Swallow(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = on
}

// To forwards new connections to another address, and ends the existing ones.
func (p *Proxy) To(address string) {
	p.mu.Lock()
	p.to = address
	p.mu.Unlock()
	p.Break()
}

func (p *Proxy) serve(client net.Conn) {
	p.mu.Lock()
	to, broke := p.to, p.broke
	p.mu.Unlock()
	server, err := net.Dial("tcp", to)
	if err != nil {
		_ = client.Close()
		return
	}
	p.mu.Lock()
	if p.broke != broke {
		_, _ = client.Close(), server.Close()
	}
	p.conns = append(p.conns, client, server)
	p.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { p.pass(server, client) })
	both.Go(func() { p.pass(client, server) })
	both.Wait()
}

func (p *Proxy) pass(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		p.mu.Lock()
		swallow := p.cut
		p.mu.Unlock()
		if swallow {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}
