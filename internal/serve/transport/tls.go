package transport

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

// Certificates are the files of a TLS server. They are read again after a change. Create it with
// [ReadCertificates]. It is safe for concurrent use.
type Certificates struct {
	warn func(error)

	mu       sync.Mutex
	files    CertificateFiles
	read     []stamp
	config   *tls.Config
	reported string // the last error; "" if there was none since the last success
}

// CertificateFiles are paths of PEM files. ClientCA has the authorities that issue clients'
// certificates; if it is empty, clients need none.
type CertificateFiles struct{ Cert, Key, ClientCA string }

// stamp changes when a file changes.
type stamp struct {
	modified time.Time
	size     int64
}

// ReadCertificates reads a certificate with its chain and its key. warn receives the error if the
// files cannot be read after a change; the earlier ones then stay in use.
func ReadCertificates(files CertificateFiles, warn func(error)) (*Certificates, error) {
	c := &Certificates{warn: warn}
	return c, c.Change(files)
}

// Change makes new connections use other files. After an error, the earlier files stay in use.
func (c *Certificates) Change(files CertificateFiles) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	read, err := files.stamps()
	if err == nil {
		err = c.load(files, read)
	}
	return err
}

// Config returns the configuration of the server. It speaks HTTP/1.1.
func (c *Certificates) Config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.current(), nil }}
}

// current reads the files if they have changed.
func (c *Certificates) current() *tls.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, err := c.files.stamps()
	if err == nil && slices.Equal(now, c.read) {
		return c.config
	}
	if err == nil {
		err = c.load(c.files, now)
	}
	if err != nil && err.Error() != c.reported {
		c.reported = err.Error()
		c.warn(err)
	}
	return c.config
}

func (f CertificateFiles) stamps() (out []stamp, err error) {
	for _, path := range []string{f.Cert, f.Key, f.ClientCA} {
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

func (c *Certificates) load(files CertificateFiles, read []stamp) error {
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		return fmt.Errorf("%s and %s: %w", files.Cert, files.Key, err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12,
		Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}}
	if files.ClientCA != "" {
		data, err := os.ReadFile(files.ClientCA)
		if err != nil {
			return err
		}
		config.ClientCAs, config.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		if !config.ClientCAs.AppendCertsFromPEM(data) {
			return fmt.Errorf("%s has no certificate in PEM", files.ClientCA)
		}
	}
	c.files, c.config, c.read, c.reported = files, config, read, ""
	return nil
}
