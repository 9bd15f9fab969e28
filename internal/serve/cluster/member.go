// Package cluster lets replicas of a server that share a store find and reach each other. It knows
// nothing of the protocol that they serve.
//
// Each replica listens on a port of its own, on the address from which it reaches the store. It
// regularly writes to the store that it is alive and where it listens. Other replicas send it HTTP
// requests there. Requests do not pass through the store.
package cluster

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolreg/toolreg/internal/store"
)

const (
	// Alive is how long a replica counts as alive after it has written so, which it does every
	// beatEvery.
	Alive     = 4 * time.Second
	beatEvery = time.Second
	// renewEvery is how often a replica rewrites everything else that it has in the store.
	renewEvery = time.Minute
	// leaveTime is the longest time that leaving takes.
	leaveTime = 5 * time.Second
	// replicaKind is the kind of values for the addresses of live replicas.
	replicaKind = "replica"
)

// Peer is a live replica. The zero value means none.
type Peer struct{ ID, Address string }

// Member is this process as one of the replicas. Create it with [New]. It is safe for concurrent
// use.
type Member struct {
	ID string // random

	store  *store.Store
	client *http.Client
	left   atomic.Bool
	// emptied is when the store was last found to lack what this replica had written, as Unix time
	// in ms.
	emptied atomic.Int64
	stale   atomic.Bool // everything must be rewritten
}

// New returns a Member that other replicas cannot see until [Member.Join].
func New(shared *store.Store) *Member {
	return &Member{ID: rand.Text(), store: shared, client: newClient(shared)}
}

// Options are what a [Member] needs from its server. All are required.
type Options struct {
	// Handle handles a request of another replica. If what the request is about is not here, it
	// does nothing and returns false. It panics with [http.ErrAbortHandler] if the request was
	// canceled before it was answered in full.
	Handle func(http.ResponseWriter, *http.Request) bool
	// Renew rewrites what the server has in the store. It is called while the process is a member,
	// never concurrently.
	Renew func(context.Context)
	// Log receives, at level debug, errors in serving other replicas.
	Log *slog.Logger
}

// Join makes this process visible to the others, once the store can be used, until leave is called.
// leave cancels the requests of other replicas and waits for them.
func (m *Member) Join(ctx context.Context, opts Options) (leave func(), err error) {
	if err := m.store.Wait(ctx); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(m.store.LocalHost(), "0"))
	if err != nil {
		return nil, fmt.Errorf("listening for the other processes that share serve.store: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	server := newServer(ctx, m, opts)
	var running sync.WaitGroup
	running.Go(func() { _ = server.ServeTLS(listener, "", "") }) // until Shutdown
	address := listener.Addr().String()
	m.stale.Store(true)
	m.announce(ctx, address)
	running.Go(func() { m.beat(ctx, address, opts.Renew) })
	return func() {
		m.left.Store(true)
		cancel()
		gone, done := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
		defer done()
		_ = m.store.Delete(gone, replicaKind, m.ID) // otherwise it expires
		if server.Shutdown(gone) != nil {
			_ = server.Close()
		}
		running.Wait()
		m.client.CloseIdleConnections()
	}, nil
}

// announce writes that this replica is alive, and reports whether that succeeded.
func (m *Member) announce(ctx context.Context, address string) bool {
	before, err := m.store.Get(ctx, replicaKind, m.ID)
	if err == nil {
		err = m.store.Put(ctx, replicaKind, m.ID, []byte(address), Alive)
	}
	if err != nil || !before.Exists() {
		m.stale.Store(true) // others may have considered this replica dead, or the store came back empty
		m.emptied.Store(time.Now().UnixMilli())
	}
	return err == nil
}

// beat announces this replica and renews what it has in the store, until ctx is done.
func (m *Member) beat(ctx context.Context, address string, renew func(context.Context)) {
	tick := time.Tick(beatEvery)
	var renewed time.Time
	for {
		select {
		case <-tick:
		case <-ctx.Done():
			return
		}
		if m.announce(ctx, address) && (m.stale.Swap(false) || time.Since(renewed) > renewEvery) {
			renew(ctx)
			renewed = time.Now()
		}
	}
}

// Find returns a replica, or the zero value if it is not known to be alive.
func (m *Member) Find(ctx context.Context, id string) (Peer, error) {
	v, err := m.store.Get(ctx, replicaKind, id)
	if err != nil || !v.Exists() {
		return Peer{}, err
	}
	return Peer{id, string(v.Data)}, nil
}

// Settling reports whether the store may lack what replicas have, because it was unavailable or
// came back empty. It is true for the time that they need to rewrite it.
func (m *Member) Settling(ctx context.Context) bool {
	if m.left.Load() {
		return false
	}
	if self, err := m.Find(ctx, m.ID); err == nil && self == (Peer{}) {
		m.stale.Store(true)
		m.emptied.Store(time.Now().UnixMilli())
	}
	return m.PresumedDead()
}

// PresumedDead reports whether others may recently have considered this replica dead and taken over
// what it had.
func (m *Member) PresumedDead() bool {
	return time.Since(time.UnixMilli(m.emptied.Load())) < 3*beatEvery
}

var (
	// ErrNotThere reports that a replica cannot be reached. It has not received the request.
	ErrNotThere = errors.New("the process that must handle the request cannot be reached")
	// ErrRefused reports that a replica has done nothing, because what the request is about is not
	// there, or no longer.
	ErrRefused = errors.New("the process does not have what the request is about")
)

// Requests between replicas use HTTP/2 over TLS. Both ends present the same certificate, whose
// private key is derived from serve.stateKey, and accept no other. So only processes with that key
// can send or read requests, and nobody can change or replay one. This alone guarantees that the
// sender of a request is who it claims to be: it comes from a replica, which has authenticated its
// client.
//
// When a connection ends, HTTP/2 tells which requests were not handled (RFC 9113, section 6.8). A
// request that a leaving replica has not accepted can then be sent elsewhere, and no other request
// is repeated.

const (
	// linkPurpose is the purpose for which the key of the certificate is derived.
	linkPurpose = "link"
	// linkName is the host name in the certificate.
	linkName = "replica"
	// headerTo has the ID of the replica that is to handle a request, because another one may have
	// got its address.
	headerTo = "Toolreg-Replica"
	// A silent connection is tested, so that one to a machine that is gone ends.
	pingAfter  = 2 * time.Second
	pingWithin = 4 * time.Second
	// largestHeader exceeds the headers that clients can send (serve's own limit) plus an identity.
	largestHeader = 1 << 20
	handshakeTime = 10 * time.Second
	// unread is how much of an answer may wait in memory for its client to read.
	unread = 256 << 10
)

// credentials returns the TLS settings for both ends of a connection. key has 32 bytes.
func credentials(key []byte) *tls.Config {
	private := ed25519.NewKeyFromSeed(key)
	template := &x509.Certificate{SerialNumber: big.NewInt(1),
		Subject: pkix.Name{CommonName: linkName}, DNSNames: []string{linkName},
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true, IsCA: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		panic("cluster: " + err.Error()) // everything but the key is constant
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		panic("cluster: " + err.Error())
	}
	only := x509.NewCertPool()
	only.AddCert(certificate)
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: private}},
		NextProtos:   []string{"h2"},
		ServerName:   linkName, RootCAs: only, ClientCAs: only,
		ClientAuth: tls.RequireAndVerifyClientCert, SessionTicketsDisabled: true,
	}
}

// onlyHTTP2 returns the only protocol of connections between replicas, and how connections are
// tested.
func onlyHTTP2() (*http.Protocols, *http.HTTP2Config) {
	protocols := &http.Protocols{}
	protocols.SetHTTP2(true)
	return protocols, &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingWithin,
		MaxConcurrentStreams: 1000, MaxReceiveBufferPerStream: unread}
}

// newServer returns a server for requests of other replicas. They are canceled when ctx is done.
func newServer(ctx context.Context, m *Member, opts Options) *http.Server {
	protocols, pings := onlyHTTP2()
	return &http.Server{
		Protocols: protocols, HTTP2: pings, TLSConfig: credentials(m.store.Derive(linkPurpose)),
		ReadHeaderTimeout: handshakeTime, MaxHeaderBytes: largestHeader,
		ErrorLog:    slog.NewLogLogger(opts.Log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return ctx },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			to := r.Header.Get(headerTo)
			r.Header.Del(headerTo)
			if to != m.ID || ctx.Err() != nil || !opts.Handle(w, r) {
				w.WriteHeader(http.StatusMisdirectedRequest)
			}
		}),
	}
}

func newClient(shared *store.Store) *http.Client {
	protocols, pings := onlyHTTP2()
	dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: shared.Limit}, Config: credentials(shared.Derive(linkPurpose))}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, shared.Limit)
		defer cancel()
		conn, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNotThere, err)
		}
		return conn, nil
	}
	return &http.Client{Transport: &http.Transport{
		Protocols: protocols, HTTP2: pings, DialTLSContext: dial, DisableCompression: true,
		IdleConnTimeout: time.Minute,
	}}
}

// Send sends a request to another replica. If the error is [ErrNotThere] or [ErrRefused], nothing
// was done; after any other error, the request may have been handled. A request with a body must
// have a GetBody.
func (m *Member) Send(r *http.Request, to Peer) (*http.Response, error) {
	r.URL.Scheme, r.URL.Host, r.Host = "https", to.Address, linkName
	r.Header.Set(headerTo, to.ID)
	answer, err := m.client.Transport.RoundTrip(r)
	if err == nil && answer.StatusCode == http.StatusMisdirectedRequest {
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		return nil, ErrRefused
	}
	return answer, err
}

// Claims are things that only one replica at a time has. Create them with [Member.Claims]. They are
// safe for concurrent use.
type Claims struct {
	member *Member
	kind   string
	last   time.Duration

	own sync.Map // by ID
}

// Claims returns the claims of a kind. A claim expires after last unless it is renewed.
func (m *Member) Claims(kind string, last time.Duration) *Claims {
	return &Claims{member: m, kind: kind, last: last}
}

// Claim returns the other live replica that has a thing. If there is none, this one gets it and
// Claim returns the zero value. It also does so while the store is unavailable.
func (c *Claims) Claim(ctx context.Context, id string) Peer {
	m := c.member
	v, err := m.store.Get(ctx, c.kind, id)
	if err != nil || string(v.Data) == m.ID {
		return Peer{}
	}
	if v.Exists() {
		if holder, err := m.Find(ctx, string(v.Data)); err != nil || holder != (Peer{}) {
			return holder
		}
	}
	now, claimed, err := m.store.Swap(ctx, c.kind, id, v, []byte(m.ID), c.last)
	switch {
	case claimed:
		c.own.Store(id, nil)
		return Peer{}
	case err != nil || string(now.Data) == m.ID:
		return Peer{}
	}
	holder, _ := m.Find(ctx, string(now.Data))
	return holder
}

// Has reports whether this replica has a thing.
func (c *Claims) Has(id string) bool {
	_, has := c.own.Load(id)
	return has
}

// Renew rewrites the claims of this replica, and forgets those that another one has taken.
func (c *Claims) Renew(ctx context.Context) {
	m := c.member
	for key := range c.own.Range {
		id := key.(string)
		v, err := m.store.Get(ctx, c.kind, id)
		switch {
		case err != nil:
		case !v.Exists() || string(v.Data) == m.ID:
			_, _, _ = m.store.Swap(ctx, c.kind, id, v, []byte(m.ID), c.last) // the next time shows who has it
		default:
			c.own.Delete(id)
		}
	}
}

// GiveUp releases all claims of this replica.
func (c *Claims) GiveUp(ctx context.Context) {
	for id := range c.own.Range {
		c.own.Delete(id)
		_ = c.member.store.Delete(ctx, c.kind, id.(string)) // otherwise others wait until this replica has ended
	}
}
