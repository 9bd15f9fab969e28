package serve

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

// Certificates are the files of a server that speaks TLS. They are read again after a change.
// Create it with [ReadCertificates]. It is safe for concurrent use.
type Certificates struct {
	cert, key, clientCA string
	warn                func(error)

	mu       sync.Mutex
	read     []stamp
	config   *tls.Config
	reported string // the error since then; "" = none
}

// stamp tells whether a file has changed.
type stamp struct {
	modified time.Time
	size     int64
}

// ReadCertificates reads a certificate with its chain and its key, in PEM. clientCA has the
// authorities that issue the certificates of clients; "": clients need none. warn receives the
// error if the files cannot be read after a change; the earlier ones then stay in use.
func ReadCertificates(cert, key, clientCA string, warn func(error)) (*Certificates, error) {
	c := &Certificates{cert: cert, key: key, clientCA: clientCA, warn: warn}
	read, err := c.stamps()
	if err == nil {
		err = c.load(read)
	}
	return c, err
}

// Config returns the configuration of the server. It speaks HTTP/1.1.
func (c *Certificates) Config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.current(), nil }}
}

// current reads the files if they have changed.
func (c *Certificates) current() *tls.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, err := c.stamps()
	if err == nil && slices.Equal(now, c.read) {
		return c.config
	}
	if err == nil {
		err = c.load(now)
	}
	if err != nil && err.Error() != c.reported {
		c.reported = err.Error()
		c.warn(err)
	}
	return c.config
}

func (c *Certificates) stamps() (out []stamp, err error) {
	for _, path := range []string{c.cert, c.key, c.clientCA} {
		if path == "" {
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		out = append(out, stamp{info.ModTime(), info.Size()})
	}
	return out, nil
}

func (c *Certificates) load(read []stamp) error {
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return fmt.Errorf("%s and %s: %w", c.cert, c.key, err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}}
	if c.clientCA != "" {
		data, err := os.ReadFile(c.clientCA)
		if err != nil {
			return err
		}
		config.ClientCAs, config.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		if !config.ClientCAs.AppendCertsFromPEM(data) {
			return fmt.Errorf("%s has no certificate in PEM", c.clientCA)
		}
	}
	c.config, c.read, c.reported = config, read, ""
	return nil
}
