package bundle

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/webaddr"
)

const (
	maxRedirects = 5
	fetchTimeout = 10 * time.Minute
)

// Fetch downloads a bundle to a file. Only public addresses are asked, and those of the
// hosts in allow. With a SHA-256 that the bundle must have, which is checked by [Open],
// redirects may lead to another host, as those of releases do; else they may not. Errors match
// [registry.ErrSourceFailed].
func Fetch(ctx context.Context, address, agent string, allow []string, pinned bool, to *os.File) error {
	ctx, cancel := context.WithTimeoutCause(ctx, fetchTimeout, fmt.Errorf("it takes longer than %s", fetchTimeout))
	defer cancel()
	err := fetch(ctx, address, agent, allow, pinned, to)
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	err = webaddr.Cause(err)
	return &registry.Failure{Text: fmt.Sprintf("fetching %s: %v", text.Escape(address), err),
		Kind: registry.ErrSourceFailed, Cause: err}
}

func fetch(ctx context.Context, address, agent string, allow []string, pinned bool, to *os.File) error {
	if err := webaddr.Check(address); err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", agent)
	transport := &http.Transport{
		ForceAttemptHTTP2: true, MaxResponseHeaderBytes: 256 << 10,
		TLSHandshakeTimeout: 10 * time.Second, DisableCompression: true,
	}
	dialer := &webaddr.Dialer{Allow: allow}
	dialer.Through(transport, func(u *url.URL) (*url.URL, error) {
		return http.ProxyFromEnvironment(&http.Request{URL: u})
	})
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, CheckRedirect: func(next *http.Request, via []*http.Request) error {
		switch {
		case len(via) > maxRedirects:
			return fmt.Errorf("more than %d redirects", maxRedirects)
		case !pinned && webaddr.Origin(next.URL) != webaddr.Origin(via[0].URL):
			return fmt.Errorf("it redirects to another host, %s", text.Escape(next.URL.Host))
		}
		return webaddr.Check(next.URL.String())
	}}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("it answered %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	n, err := io.Copy(to, io.LimitReader(resp.Body, maxPacked+1))
	if err == nil && n > maxPacked {
		err = fmt.Errorf("it exceeds %d bytes", maxPacked)
	}
	return err
}
