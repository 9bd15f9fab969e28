package web

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"github.com/toolreg/toolreg/internal/state"
)

const (
	cacheFolder  = "fetch"
	cacheTime    = 15 * time.Minute
	cacheFiles   = 64
	cacheMaxPage = 4 << 20 // larger pages are not stored
)

// pageCache is the file of one page. Its name depends on the list of allowed hosts, the headers
// and the limit of the size too. If the cache cannot be used, it is treated as empty, because it
// only saves time.
type pageCache struct {
	refresh bool       // ignore stored pages
	dir     *state.Dir // nil means no cache
	name    string
}

func (f *webFetch) cache(ctx context.Context, u *url.URL) *pageCache {
	if f.opts.CacheDir == "" {
		return &pageCache{}
	}
	headers, err := f.headers(ctx, u)
	if err != nil {
		return &pageCache{}
	}
	dir, err := state.OpenDir(filepath.Join(f.opts.CacheDir, cacheFolder))
	if err != nil {
		return &pageCache{}
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %t %d",
		u.String(), f.opts.AllowHosts, headers, f.opts.Proxy != nil, f.opts.MaxBytes))
	return &pageCache{dir: dir, refresh: f.opts.Refresh, name: fmt.Sprintf("page-%x", sum)}
}

// page returns the page at an address, from the cache if possible.
func (f *webFetch) page(ctx context.Context, u *url.URL, may admit) (*webPage, error) {
	cache := f.cache(ctx, u)
	if p := cache.load(time.Now()); p != nil {
		if p.Address != u.String() {
			if err := may(ctx, u, p.url); err != nil {
				return nil, err
			}
		}
		return p, nil
	}
	p, err := f.getPage(ctx, u, may)
	if err == nil {
		cache.store(p)
	}
	return p, err
}

// load returns the page if it is stored and has not expired, or nil.
func (c *pageCache) load(now time.Time) *webPage {
	if c.dir == nil || c.refresh {
		return nil
	}
	data, err := c.dir.Read(c.name)
	if err != nil {
		return nil
	}
	p := &webPage{cached: true}
	if json.Unmarshal(data, p) != nil {
		return nil
	}
	if age := now.Sub(p.Fetched); age < 0 || age >= cacheTime {
		return nil
	}
	if p.url, err = parseAddress(p.Address); err != nil {
		return nil
	}
	return p
}

// store stores a page and removes expired ones.
func (c *pageCache) store(p *webPage) {
	if c.dir == nil || p.noStore || p.Status != 200 || len(p.Body) > cacheMaxPage {
		return
	}
	data, err := json.Marshal(p)
	if err == nil && c.dir.Put(c.name, data) == nil {
		_ = c.dir.Sweep(time.Now(), state.Bounds{Age: cacheTime, Files: cacheFiles})
	}
}
