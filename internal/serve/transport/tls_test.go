package transport

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// writeCertificate writes a certificate of its own authority and its key.
func writeCertificate(t *testing.T, dir, name string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// The certificates are those of the files, also after a change; files that cannot be read are
// reported once and change nothing.
func TestCertificatesAreReadAgain(t *testing.T) {
	dir := t.TempDir()
	cert, key := writeCertificate(t, dir, "first")
	var warned []string
	c, err := ReadCertificates(CertificateFiles{cert, key, ""}, func(err error) { warned = append(warned, err.Error()) })
	if err != nil {
		t.Fatal(err)
	}
	addr := listenTLS(t, c)
	if got := peer(t, addr); got != "first" {
		t.Errorf("the certificate is of %s", got)
	}
	writeCertificate(t, dir, "the second")
	if got := peer(t, addr); got != "the second" {
		t.Errorf("after a change the certificate is of %s", got)
	}
	if err := os.WriteFile(key, []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := peer(t, addr); got != "the second" {
			t.Errorf("with a broken file the certificate is of %s", got)
		}
	}
	if len(warned) != 1 || !strings.Contains(warned[0], "key.pem") {
		t.Errorf("warned %q", warned)
	}
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	if got := peer(t, addr); got != "the second" || len(warned) != 2 {
		t.Errorf("without the file: %s, %q", got, warned)
	}
	writeCertificate(t, dir, "third of all")
	if got := peer(t, addr); got != "third of all" {
		t.Errorf("after it was corrected: %s", got)
	}
}

// With an authority, clients need a certificate of it.
func TestClientCertificates(t *testing.T) {
	cert, key := writeCertificate(t, t.TempDir(), "server")
	ca, caKey := writeCertificate(t, t.TempDir(), "client")
	c, err := ReadCertificates(CertificateFiles{cert, key, ca}, func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	addr := listenTLS(t, c)
	own, err := tls.LoadX509KeyPair(ca, caKey)
	if err != nil {
		t.Fatal(err)
	}
	other, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	for name, one := range map[string]struct {
		certificates []tls.Certificate
		ok           bool
	}{"own": {[]tls.Certificate{own}, true}, "other": {[]tls.Certificate{other}, false}, "none": {nil, false}} {
		conn, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, Certificates: one.certificates}) // the server is not what is tested
		if err == nil {
			_, err = conn.Read(make([]byte, 1)) // the server refuses after the handshake of the client
			_ = conn.Close()
		}
		if refused := err != nil && strings.Contains(err.Error(), "certificate"); refused == one.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := c.Change(CertificateFiles{cert, key, ""}); err != nil {
		t.Fatal(err)
	}
	if got := peer(t, addr); got != "server" {
		t.Errorf("without an authority, a client without a certificate sees %q", got)
	}
	if _, err := ReadCertificates(CertificateFiles{cert, key, key}, nil); err == nil || !strings.Contains(err.Error(), "has no certificate in PEM") {
		t.Error(err)
	}
	if _, err := ReadCertificates(CertificateFiles{cert, filepath.Join(t.TempDir(), "absent"), ""}, nil); err == nil {
		t.Error("a key that is absent is accepted")
	}
}

// listenTLS accepts connections and closes them after the handshake.
func listenTLS(t *testing.T, c *Certificates) (addr string) {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", c.Config())
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = conn.(*tls.Conn).Handshake()
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return l.Addr().String()
}

// peer returns the name in the certificate of a server.
func peer(t *testing.T, addr string) string {
	t.Helper()
	conn, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true}) // its name is what is tested
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].Subject.CommonName
}

// A client whose authority is no longer accepted is refused, also if it resumes an earlier session.
func TestSessionsAreNotResumedUnderAnotherAuthority(t *testing.T) {
	dir := t.TempDir()
	cert, key := writeCertificate(t, dir, "server")
	clients := filepath.Join(dir, "clients")
	others := filepath.Join(dir, "others")
	for _, d := range []string{clients, others} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	own, ownKey := writeCertificate(t, clients, "client")
	other, _ := writeCertificate(t, others, "other")
	for name, change := range map[string]func(*Certificates) error{
		"another file": func(c *Certificates) error { return c.Change(CertificateFiles{cert, key, other}) },
		"another content": func(c *Certificates) error {
			data, err := os.ReadFile(other)
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(dir, "ca.pem"), data, 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(own)
			if err != nil {
				t.Fatal(err)
			}
			ca := filepath.Join(dir, "ca.pem")
			if err := os.WriteFile(ca, append(data, "\n\n"...), 0o600); err != nil {
				t.Fatal(err)
			}
			c, err := ReadCertificates(CertificateFiles{cert, key, ca}, func(err error) { t.Error(err) })
			if err != nil {
				t.Fatal(err)
			}
			addr := listenTLS(t, c)
			pair, err := tls.LoadX509KeyPair(own, ownKey)
			if err != nil {
				t.Fatal(err)
			}
			for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
				if err := os.WriteFile(ca, append(data, "\n\n"...), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := c.Change(CertificateFiles{cert, key, ca}); err != nil {
					t.Fatal(err)
				}
				config := &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{pair}, ClientSessionCache: tls.NewLRUClientSessionCache(4), MaxVersion: version}
				if resumed, err := talk(addr, config); err != nil || resumed {
					t.Fatalf("%x: %t, %v", version, resumed, err)
				}
				if err := change(c); err != nil {
					t.Fatal(err)
				}
				if resumed, err := talk(addr, config); err == nil {
					t.Errorf("%x: accepted, resumed: %t", version, resumed)
				}
			}
		})
	}
}

// talk connects to a server, and reports whether that resumed an earlier session.
func talk(addr string, config *tls.Config) (resumed bool, err error) {
	conn, err := tls.Dial("tcp", addr, config)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	if _, err = conn.Read(make([]byte, 1)); errors.Is(err, io.EOF) { // the server refuses after the handshake of the client
		err = nil
	}
	return conn.ConnectionState().DidResume, err
}
