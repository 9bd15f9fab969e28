// Package mcpregistry is a client of registries of MCP servers (API v0.1). It only reads.
// A registry is hostile: pages and their number are limited, redirects stay within its
// origin, and an answer must be about what was asked for.
package mcpregistry

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/serverjson"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/webaddr"
)

// Limits on the answers of a registry.
const (
	maxPage    = 16 << 20 // bytes
	maxPages   = 100
	pageSize   = 100
	timeout    = 30 * time.Second // of one request
	searchTime = 2 * time.Minute  // of all requests of a search
)

// MinWord is the length of the shortest word, in characters, that registries search for.
const MinWord = 3

// Latest is the version that stands for the latest one.
const Latest = "latest"

// The states of a version.
const (
	Active     = "active"
	Deprecated = "deprecated"
	Deleted    = "deleted"
)

// Registry is a registry of MCP servers.
type Registry struct {
	URL     string // its API is at URL/v0.1
	Headers http.Header
	Agent   string // User-Agent
}

// Entry is one version of a server.
type Entry struct {
	Server        *serverjson.Server
	Status        string
	StatusMessage string
	Published     time.Time // zero if unknown
}

// Search calls found for the latest version of each server whose name contains a word, until
// the registry has no more. unreadable is the number of entries that cannot be read.
func (r *Registry) Search(ctx context.Context, word string, found func(*Entry)) (unreadable int, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, searchTime, fmt.Errorf("the search takes longer than %s", searchTime))
	defer cancel()
	cursor, seen := "", map[string]bool{}
	for range maxPages {
		query := url.Values{"search": {word}, "version": {Latest}, "limit": {strconv.Itoa(pageSize)}}
		if cursor != "" {
			query.Set("cursor", cursor)
		}
		var page struct {
			Servers  []json.RawMessage `json:"servers"`
			Metadata struct {
				NextCursor string `json:"nextCursor"`
			} `json:"metadata"`
		}
		status, err := r.get(ctx, "/v0.1/servers?"+query.Encode(), &page)
		if err == nil && status != http.StatusOK {
			err = r.refused(status)
		}
		if err != nil {
			return unreadable, err
		}
		for _, raw := range page.Servers {
			entry, err := parseEntry(raw)
			if err != nil {
				unreadable++
				continue
			}
			found(entry)
		}
		cursor = page.Metadata.NextCursor
		if cursor == "" || seen[cursor] {
			return unreadable, nil
		}
		seen[cursor] = true
	}
	return unreadable, nil
}

// Get returns a version of a server, or the latest one. The error for a server that does
// not exist matches [registry.ErrNotFound].
func (r *Registry) Get(ctx context.Context, name, version string) (*Entry, error) {
	var raw json.RawMessage
	path := "/v0.1/servers/" + url.PathEscape(name) + "/versions/" + url.PathEscape(version) + "?include_deleted=true"
	status, err := r.get(ctx, path, &raw)
	switch {
	case err != nil:
		return nil, err
	case status == http.StatusNotFound:
		message := fmt.Sprintf("registry %s has no version %q of server %q", r.URL, version, name)
		if version == Latest {
			message = fmt.Sprintf("registry %s has no server %q", r.URL, name)
		}
		return nil, &registry.Failure{Text: message, Kind: registry.ErrNotFound,
			Help: "toolreg servers find searches for names"}
	case status != http.StatusOK:
		return nil, r.refused(status)
	}
	entry, err := parseEntry(raw)
	if err != nil {
		return nil, r.failed(fmt.Errorf("reading server %s: %w", text.Quote(name), err))
	}
	if s := entry.Server; s.Name != name || version != Latest && s.Version != version {
		return nil, r.failed(fmt.Errorf("asked for %s %s, it answered with %s %s", text.Quote(name),
			text.Quote(version), text.Quote(s.Name), text.Quote(s.Version)))
	}
	return entry, nil
}

func parseEntry(raw json.RawMessage) (*Entry, error) {
	var wire struct {
		Server json.RawMessage `json:"server"`
		Meta   struct {
			Official struct {
				Status        string    `json:"status"`
				StatusMessage string    `json:"statusMessage"`
				PublishedAt   time.Time `json:"publishedAt"`
			} `json:"io.modelcontextprotocol.registry/official"`
		} `json:"_meta"`
	}
	if err := jsonx.Unmarshal(raw, &wire); err != nil {
		return nil, err
	}
	server, err := serverjson.Parse(wire.Server)
	if err != nil {
		return nil, err
	}
	m := wire.Meta.Official
	return &Entry{
		Server:        server,
		Status:        cmp.Or(m.Status, Active),
		StatusMessage: m.StatusMessage,
		Published:     m.PublishedAt,
	}, nil
}

func (r *Registry) failed(err error) error {
	return r.fail(webaddr.Explained(err), "")
}

// refused returns the error for an answer without what was asked for.
func (r *Registry) refused(status int) error {
	hint := ""
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		hint = `it wants other credentials: give its entry in the setting registries headers, such as {url: ` +
			r.URL + `, headers: {Authorization: "Bearer $TOKEN"}}`
	}
	return r.fail(webaddr.StatusError(status), hint)
}

func (r *Registry) fail(cause error, hint string) error {
	return &registry.Failure{Text: fmt.Sprintf("registry %s: %v", r.URL, cause), Help: hint,
		Kind: registry.ErrSourceFailed, Cause: cause}
}

// get sends one request and decodes an answer with status 200.
func (r *Registry) get(ctx context.Context, path string, into any) (status int, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %s", timeout))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(r.URL, "/")+path, http.NoBody)
	if err != nil {
		return 0, r.failed(err)
	}
	maps.Copy(req.Header, r.Headers)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", r.Agent)
	transport := webaddr.NewTransport(256 << 10)
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, CheckRedirect: webaddr.WithinOrigin}
	resp, err := client.Do(req)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return 0, r.failed(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return resp.StatusCode, nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxPage+1))
	switch {
	case err != nil:
	case len(body) > maxPage:
		err = fmt.Errorf("its answer exceeds %d bytes", maxPage)
	default:
		if err = jsonx.Unmarshal(text.WithoutMark(body), into); err != nil {
			err = fmt.Errorf("its answer is not that of a registry: %w", err)
		}
	}
	if err != nil {
		return 0, r.failed(err)
	}
	return resp.StatusCode, nil
}
