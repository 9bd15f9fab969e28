package cluster

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"time"

	"github.com/toolreg/toolreg/internal/store"
)

// Requests between replicas go over HTTP/2 with TLS. Both ends show the same certificate, whose
// private key is derived from serve.stateKey, and accept no other. So only processes with that key
// can send a request or read one, and none can be changed, or sent again by somebody else. That the
// sender is who a request says it is relies on this alone: what arrives here comes from a replica,
// which has authenticated its client.
//
// HTTP/2 tells, when a connection ends, which requests were not handled (RFC 9113, section 6.8), so
// that a request that a replica which is to end has not accepted can go elsewhere, and no other one
// is repeated.

const (
	// linkPurpose is what the key of the certificate is derived for.
	linkPurpose = "link"
	// linkName is the name in the certificate.
	linkName = "replica"
	// headerTo has the ID of the replica that is to handle a request. Another one may have got
	// its address.
	headerTo = "Toolreg-Replica"
	// A connection on which nothing arrives is tested, so that one to a machine that is gone ends.
	pingAfter  = 2 * time.Second
	pingWithin = 4 * time.Second
	// largestHeader is more than clients can send (serve's own limit), with the identity of one.
	largestHeader = 1 << 20
	handshakeTime = 10 * time.Second
	// unread is how much of an answer waits in memory until its client has read what comes before.
	unread = 256 << 10
)

// credentials returns the settings of TLS for both ends of a connection. key has 32 bytes.
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
		panic("cluster: " + err.Error()) // all is constant but the key
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

// onlyHTTP2 returns the only protocol of a link, and how its connections are tested.
func onlyHTTP2() (*http.Protocols, *http.HTTP2Config) {
	protocols := &http.Protocols{}
	protocols.SetHTTP2(true)
	return protocols, &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingWithin,
		MaxConcurrentStreams: 1000, MaxReceiveBufferPerStream: unread}
}

// newServer returns a server for the requests of other replicas. They are canceled when ctx is done.
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
// was done; after another one, the request may have been handled. A request with a body has a
// GetBody.
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
