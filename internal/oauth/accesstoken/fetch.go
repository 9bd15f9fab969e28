package accesstoken

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/toolreg/toolreg/internal/webaddr"
)

const (
	// fetchTime is the time limit of a fetch, with all its requests.
	fetchTime = 10 * time.Second
	// maxDocument is the maximum size of metadata and of a set of keys, in bytes.
	maxDocument  = 1 << 20
	maxRedirects = 5
)

// newClient returns a client that follows redirects only within an origin.
func newClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, ForceAttemptHTTP2: true,
			TLSHandshakeTimeout: fetchTime, MaxResponseHeaderBytes: 64 << 10},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			switch {
			case len(via) > maxRedirects:
				return fmt.Errorf("more than %d redirects", maxRedirects)
			case webaddr.Origin(r.URL) != webaddr.Origin(via[0].URL):
				return errors.New("a redirect to another origin")
			}
			return nil
		},
	}
}

// statusError is the status of an answer without a document.
type statusError int

func (e statusError) Error() string { return fmt.Sprintf("it answered %d", int(e)) }

// errNotJSON reports an answer that is something else, such as a page.
var errNotJSON = errors.New("it is not the JSON that was expected")

// read fetches a JSON document. Its address has been checked.
func (s *keySet) read(ctx context.Context, address string, into any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "application/json")
	answer, err := s.client.Do(r)
	if failed, ok := errors.AsType[*url.Error](err); ok { // it repeats the address
		return failed.Err
	}
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return statusError(answer.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(answer.Body, maxDocument+1))
	switch {
	case err != nil:
		return err
	case len(data) > maxDocument:
		return fmt.Errorf("it is larger than %d bytes", maxDocument)
	case json.Unmarshal(data, into) != nil:
		return errNotJSON
	}
	return nil
}
