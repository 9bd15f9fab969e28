// Package store shares what replicas of `toolreg serve` must agree on through a server of
// Redis or Valkey (serve.store): values that end by themselves, values that are taken once, and
// counts. It knows nothing of what they mean.
//
// Whoever can use the server may see how much is stored and when, but not what: values are sealed
// with a key derived from serve.stateKey, and names are keyed hashes. What
// does not open with that key, or was stored under another name, is treated as absent.
package store

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Timeout is the maximum time that a method waits for the server, unless [Store.Limit] is set.
const Timeout = 2 * time.Second

// pause is how long [Store.Wait] waits between attempts, and how long a failure to connect, or to
// answer in time, counts: what is asked for one thing after the other does not wait for each.
const pause = 200 * time.Millisecond

// UnavailableError reports that the server cannot be used now: it cannot be reached, is too slow, or
// refuses to store anything. What was asked for may have happened nevertheless.
type UnavailableError struct{ Err error }

// Error does not disclose the cause, which clients must not see.
func (e *UnavailableError) Error() string {
	return "what the replicas of this server share (serve.store) cannot be used now; try again later"
}

func (e *UnavailableError) Unwrap() error { return e.Err }

// Store is a pool of connections to a server. Create it with [Open]. It is safe for concurrent use.
type Store struct {
	prefix string
	server server
	pool   redis.Pool
	sealer sealer
	fresh  freshness

	// Limit is the maximum time that a method waits for the server, [Timeout] by default. Set it
	// before the first use.
	Limit time.Duration
	// Changed is called with the cause when the server becomes unavailable, and with nil when it
	// can be used for everything again. Set it before the first use. May be nil.
	Changed  func(err error)
	away     atomic.Bool
	answered atomic.Bool
	refuses  atomic.Bool // it answers, but has refused something, for example to store a value for lack of memory

	mu      sync.Mutex
	failed  time.Time // when the server could not be reached or did not answer in time
	failure error
	broken  time.Time // when a connection broke
	local   string    // the host of this end of the last connection; "" means there was none
}

// server says where a server is, and how a connection to it begins.
type server struct {
	address        string      // HOST:PORT
	tls            *tls.Config // nil means no TLS
	user, password string
	database       int
}

// maxConnections is the maximum number of connections of a Store, and maxIdle how many it keeps
// open.
const maxConnections, maxIdle = 64, 16

// isPrefix reports whether a name can separate the values of a deployment from others.
func isPrefix(name string) bool {
	return name != "" && len(name) <= 64 &&
		strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == ""
}

// Open returns a Store for an address, redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE][?prefix=NAME],
// or rediss:// for TLS, whose values are sealed with a key derived from secret. It does not
// connect. The error does not contain the address, which may have a password in it.
func Open(address, secret string) (*Store, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("it is not a URL such as redis://HOST:6379")
	}
	s := &Store{prefix: "toolreg", sealer: newSealer(secret), Limit: Timeout}
	switch {
	case u.Scheme != "redis" && u.Scheme != "rediss":
		return nil, errors.New("it must begin with redis:// or rediss://")
	case u.Hostname() == "":
		return nil, errors.New("it names no host")
	case u.Fragment != "":
		return nil, errors.New("a # in it must be written as %23")
	case u.Scheme == "rediss":
		s.server.tls = &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12}
	}
	port := u.Port()
	switch n, err := strconv.ParseUint(port, 10, 16); {
	case port == "":
		port = "6379"
	case err != nil || n == 0:
		return nil, errors.New("the port must be a number from 1 to 65535")
	}
	s.server.address = net.JoinHostPort(u.Hostname(), port)
	s.server.user = u.User.Username()
	s.server.password, _ = u.User.Password()
	if database := strings.Trim(u.Path, "/"); database != "" {
		if s.server.database, err = strconv.Atoi(database); err != nil || s.server.database < 0 {
			return nil, errors.New("the database behind the host must be a number")
		}
	}
	for name, values := range u.Query() {
		if name != "prefix" || len(values) != 1 || !isPrefix(values[0]) {
			return nil, errors.New("behind ? only prefix=NAME is known, with a name of letters, digits and . _ -")
		}
		s.prefix = values[0]
	}
	s.pool = redis.Pool{
		MaxActive: maxConnections, MaxIdle: maxIdle, IdleTimeout: time.Minute, Wait: true,
		DialContext: s.connect, TestOnBorrowContext: s.answers,
	}
	return s, nil
}

func (s *Store) connect(ctx context.Context) (redis.Conn, error) {
	return redis.DialContext(ctx, "tcp", s.server.address, redis.DialContextFunc(s.dial),
		redis.DialReadTimeout(s.Limit), redis.DialWriteTimeout(s.Limit),
		redis.DialUsername(s.server.user), redis.DialPassword(s.server.password), redis.DialDatabase(s.server.database))
}

// answers returns an error if a connection that was not used for a while, or not since another one
// broke, is broken. So a restart of the server does not make the next command fail.
func (s *Store) answers(ctx context.Context, c redis.Conn, used time.Time) error {
	s.mu.Lock()
	broken := s.broken
	s.mu.Unlock()
	if time.Since(used) < pause && used.After(broken) {
		return nil
	}
	_, err := redis.DoContext(c, ctx, "PING")
	return err
}

// dial connects to the server and remembers the local address.
func (s *Store) dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	dialer := &net.Dialer{Timeout: s.Limit}
	if s.server.tls != nil {
		conn, err = (&tls.Dialer{NetDialer: dialer, Config: s.server.tls}).DialContext(ctx, network, address)
	} else {
		conn, err = dialer.DialContext(ctx, network, address)
	}
	if err != nil {
		return nil, err
	}
	if host, _, err := net.SplitHostPort(conn.LocalAddr().String()); err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.local = host
	}
	return conn, nil
}

// LocalHost returns the address of this machine from which it has reached the server, where other
// users of the server are likely to reach it; "" before the first connection.
func (s *Store) LocalHost() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.local
}

// Close ends the connections. The Store cannot be used afterwards.
func (s *Store) Close() { _ = s.pool.Close() }

// explained adds to an error its usual meaning if the server has never answered.
func (s *Store) explained(err error) error {
	late, _ := errors.AsType[net.Error](err)
	op, _ := errors.AsType[*net.OpError](err)
	silent := late != nil && late.Timeout() && (op == nil || op.Op != "dial")
	_, foreign := errors.AsType[tls.RecordHeaderError](err)
	withTLS := s.server.tls != nil
	switch {
	case s.answered.Load():
	case withTLS && (foreign || silent):
		return fmt.Errorf("%w; it may not use TLS: then the address begins with redis://", err)
	case !withTLS && (errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF)):
		return fmt.Errorf("%w; it may use TLS: then the address begins with rediss://", err)
	case strings.Contains(err.Error(), "unexpected response line"):
		return fmt.Errorf("%w; it does not answer as Redis or Valkey does", err)
	}
	return err
}

// fail makes the following commands fail immediately for a moment.
func (s *Store) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed, s.failure = time.Now(), err
}

// failing returns the failure that is still in effect, or nil.
func (s *Store) failing() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.failed) < pause {
		return s.failure
	}
	return nil
}

// do sends a command and returns the answer; nil means there is no value. Every failure is an
// *UnavailableError, unless ctx was done before. A command is never sent twice.
func (s *Store) do(ctx context.Context, command string, args ...any) (any, error) {
	answer, err := s.send(ctx, command, args...)
	switch {
	case err == nil:
		if !s.refuses.Load() {
			s.report(nil)
		}
		return answer, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	if _, refused := errors.AsType[redis.Error](err); refused {
		s.refuses.Store(true) // until it has stored something, see [Store.Put]
	}
	s.report(err)
	return nil, &UnavailableError{err}
}

func (s *Store) send(ctx context.Context, command string, args ...any) (any, error) {
	if err := s.failing(); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, s.Limit)
	defer cancel()
	conn, err := s.pool.GetContext(limited)
	if err != nil {
		err = s.explained(err)
		if ctx.Err() == nil {
			s.fail(err)
		}
		return nil, err
	}
	defer conn.Close()
	answer, err := redis.DoContext(conn, limited, command, args...)
	if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() && ctx.Err() == nil {
		s.fail(err)
	}
	if err != nil {
		if conn.Err() != nil {
			s.mu.Lock()
			s.broken = time.Now()
			s.mu.Unlock()
		}
		return nil, s.explained(err)
	}
	s.answered.Store(true)
	return answer, nil
}

// textOf returns an answer as text, "" if there is none.
func textOf(answer any, err error) (string, error) {
	s, err := redis.String(answer, err)
	if errors.Is(err, redis.ErrNil) {
		return "", nil
	}
	return s, err
}

func (s *Store) eval(ctx context.Context, script string, names []string, args ...any) (any, error) {
	return s.do(ctx, "EVAL", append(redis.Args{script, len(names)}.AddFlat(names), args...)...)
}

// report calls Changed if the server has become unavailable or available.
func (s *Store) report(err error) {
	if s.away.Swap(err != nil) != (err != nil) && s.Changed != nil {
		s.Changed(err)
	}
}

// name returns the name of a value on the server.
func (s *Store) name(kind, id string) string {
	return fmt.Sprintf("%s:%s:%s", s.prefix, kind, s.sealer.hash(kind, id))
}
