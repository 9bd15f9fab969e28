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

	"github.com/valkey-io/valkey-go"
)

// Timeout is how long a method waits for the server at most.
const Timeout = 2 * time.Second

// pause is how long [Store.Wait] waits between attempts, and how long a failure to connect, or to
// answer in time, counts: what is asked for one thing after the other does not wait for each.
const pause = 200 * time.Millisecond

// AwayError reports that the server cannot be used now: it cannot be reached, is too slow, or
// refuses to store anything. What was asked for may have happened nevertheless.
type AwayError struct{ Err error }

// Error does not disclose the cause, which clients are not to know.
func (e *AwayError) Error() string {
	return "what the replicas of this server share (serve.store) cannot be used now; try again later"
}

// Unwrap returns the cause.
func (e *AwayError) Unwrap() error { return e.Err }

// Store is the connection to a server. Create it with [Open]. It is safe for concurrent use.
type Store struct {
	prefix string
	option valkey.ClientOption
	sealer sealer
	fresh  freshness

	// Changed is called when the server goes away, with the cause, and with nil when it is
	// back: can be used for everything. It is set before the first use; nil means nobody is told.
	Changed func(err error)
	away    atomic.Bool
	refuses atomic.Bool // it answers, but has refused to do something, such as to store what it has no room for

	connecting chan struct{} // has one element, which whoever connects takes
	mu         sync.Mutex
	client     valkey.Client // nil before the first connection
	failed     time.Time     // when the server could not be reached or did not answer in time
	failure    error
	local      string // the host of this end of the last connection; "" means there was none
}

// isPrefix reports whether a name can keep the values of a deployment apart from others.
func isPrefix(name string) bool {
	return name != "" && len(name) <= 64 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == ""
}

// Open returns a Store for an address, redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE][?prefix=NAME],
// or rediss:// for TLS, whose values are sealed with a key derived from secret. It does not
// connect. The error does not contain the address, which may have a password in it.
func Open(address, secret string) (*Store, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("it is not a URL such as redis://HOST:6379")
	}
	s := &Store{prefix: "toolreg", sealer: newSealer(secret), connecting: make(chan struct{}, 1)}
	s.connecting <- struct{}{}
	s.option = valkey.ClientOption{
		ForceSingleClient: true, DisableCache: true, DisableRetry: true, // a repeated command could take effect twice
		Dialer: net.Dialer{Timeout: Timeout}, ConnWriteTimeout: Timeout,
		ReadBufferEachConn: 64 << 10, WriteBufferEachConn: 64 << 10, RingScaleEachConn: 8, PipelineMultiplex: -1,
		ClientSetInfo: valkey.DisableClientSetInfo,
	}
	s.option.DialCtxFn = s.dial
	switch {
	case u.Scheme != "redis" && u.Scheme != "rediss":
		return nil, errors.New("it must begin with redis:// or rediss://")
	case u.Hostname() == "":
		return nil, errors.New("it names no host")
	case u.Fragment != "":
		return nil, errors.New("a # in it must be written as %23")
	case u.Scheme == "rediss":
		s.option.TLSConfig = &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12}
	}
	port := u.Port()
	switch n, err := strconv.ParseUint(port, 10, 16); {
	case port == "":
		port = "6379"
	case err != nil || n == 0:
		return nil, errors.New("the port must be a number from 1 to 65535")
	}
	s.option.InitAddress = []string{net.JoinHostPort(u.Hostname(), port)}
	s.option.Username = u.User.Username()
	s.option.Password, _ = u.User.Password()
	if database := strings.Trim(u.Path, "/"); database != "" {
		if s.option.SelectDB, err = strconv.Atoi(database); err != nil || s.option.SelectDB < 0 {
			return nil, errors.New("the database behind the host must be a number")
		}
	}
	for name, values := range u.Query() {
		if name != "prefix" || len(values) != 1 || !isPrefix(values[0]) {
			return nil, errors.New("behind ? only prefix=NAME is known, with a name of letters, digits and . _ -")
		}
		s.prefix = values[0]
	}
	return s, nil
}

// dial connects to the server.
func (s *Store) dial(ctx context.Context, address string, dialer *net.Dialer, config *tls.Config) (conn net.Conn, err error) {
	if config != nil {
		conn, err = (&tls.Dialer{NetDialer: dialer, Config: config}).DialContext(ctx, "tcp", address)
	} else {
		conn, err = dialer.DialContext(ctx, "tcp", address)
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

// LocalHost returns the address of this machine from which it has reached the server, so that others
// which use the server are likely to reach it there; "" before the first connection.
func (s *Store) LocalHost() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.local
}

// Close ends the connections. The Store cannot be used any more.
func (s *Store) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil {
		s.client.Close()
	}
}

// Wait waits until the server can be used, or ctx is done.
func (s *Store) Wait(ctx context.Context) error {
	for {
		if err := s.Put(ctx, "start", "", nil, time.Second); err == nil {
			return nil
		}
		retry := time.NewTimer(pause)
		select {
		case <-retry.C:
		case <-ctx.Done():
			retry.Stop()
			return context.Cause(ctx)
		}
	}
}

// connected returns the connection, which reconnects by itself once it has been made.
func (s *Store) connected(ctx context.Context) (valkey.Client, error) {
	select {
	case <-s.connecting:
		defer func() { s.connecting <- struct{}{} }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s.mu.Lock()
	client, failed, failure := s.client, s.failed, s.failure
	s.mu.Unlock()
	switch {
	case failure != nil && time.Since(failed) < pause:
		return nil, failure
	case client != nil:
		return client, nil
	}
	client, err := valkey.NewClient(s.option)
	if err != nil {
		err = s.explained(err)
		s.fail(err)
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.client = client
	return client, nil
}

// explained adds to an error of connecting what it usually means.
func (s *Store) explained(err error) error {
	late, _ := errors.AsType[net.Error](err)
	op, _ := errors.AsType[*net.OpError](err)
	silent := late != nil && late.Timeout() && (op == nil || op.Op != "dial")
	_, foreign := errors.AsType[tls.RecordHeaderError](err)
	withTLS := s.option.TLSConfig != nil
	switch {
	case withTLS && (foreign || silent):
		return fmt.Errorf("%w; it may not use TLS: then the address begins with redis://", err)
	case !withTLS && (errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF)):
		return fmt.Errorf("%w; it may use TLS: then the address begins with rediss://", err)
	case strings.Contains(err.Error(), "unknown message type"):
		return fmt.Errorf("%w; it does not answer as Redis or Valkey does", err)
	}
	return err
}

// fail lets what follows fail at once for a moment.
func (s *Store) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed, s.failure = time.Now(), err
}

// do calls use with the connection and a context that ends soon. An error of use becomes an
// *AwayError, unless ctx was done before.
func (s *Store) do(ctx context.Context, use func(context.Context, valkey.Client) error) error {
	limited, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	client, err := s.connected(limited)
	if err == nil {
		err = use(limited, client)
		if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() && ctx.Err() == nil {
			s.fail(err)
		}
	}
	switch {
	case err == nil || valkey.IsValkeyNil(err):
		if !s.refuses.Load() {
			s.report(nil)
		}
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	if _, refused := valkey.IsValkeyErr(err); refused {
		s.refuses.Store(true) // until it has stored something, see [Store.Put]
	}
	s.report(err)
	return &AwayError{err}
}

// report calls Changed if the server went away or is back.
func (s *Store) report(err error) {
	if s.away.Swap(err != nil) != (err != nil) && s.Changed != nil {
		s.Changed(err)
	}
}

// name returns the name of a value on the server.
func (s *Store) name(kind, id string) string {
	return fmt.Sprintf("%s:%s:%s", s.prefix, kind, s.sealer.hash(kind, id))
}
