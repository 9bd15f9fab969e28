package openapi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"syscall"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/webaddr"
)

// Error reports that an API or its document could not be reached or used. It wraps
// [registry.ErrSourceFailed] and the cause.
type Error struct {
	API    string // its name in the settings
	Reason string
	Cause  error // may be nil
}

func (e *Error) Error() string { return fmt.Sprintf("API %q: %s", e.API, e.Reason) }

// Unwrap returns ErrSourceFailed and the cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{registry.ErrSourceFailed}
	}
	return []error{registry.ErrSourceFailed, e.Cause}
}

// fail returns the error for a failure of the API, with the secrets of the settings masked.
func (s *Source) fail(err error) error {
	s.mu.Lock()
	c := s.client
	s.mu.Unlock()
	return s.failure(c, err)
}

// failure is fail with the client, which may be nil.
func (s *Source) failure(c *client, err error) error {
	if _, ok := errors.AsType[*settings.Error](err); ok {
		return err
	}
	reason := explain(err)
	if c != nil {
		reason = c.hide(reason)
	}
	return &Error{s.opts.API.Name, text.Escape(reason), err}
}

// explain returns why a request failed.
func explain(err error) string {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err // the wrapper repeats the address
	}
	if blocked, ok := errors.AsType[*webaddr.BlockedError](err); ok {
		return blocked.Error()
	}
	var dns *net.DNSError
	var unknown x509.UnknownAuthorityError
	var verification *tls.CertificateVerificationError
	switch {
	case errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, syscall.ETIMEDOUT):
		return err.Error()
	case errors.As(err, &dns) && dns.IsNotFound:
		return fmt.Sprintf("host %q not found; check the address", dns.Name)
	case errors.Is(err, syscall.ECONNREFUSED):
		return err.Error() + "; nothing listens there"
	case errors.As(err, &unknown), errors.As(err, &verification):
		return err.Error() + "; certificate checks cannot be disabled"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the server closed the connection early"
	}
	return err.Error()
}
