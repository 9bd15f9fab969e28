package web

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/state"
)

const (
	cacheFolder  = "fetch"
	cacheTime    = 15 * time.Minute
	cacheSlots   = 64      // maximum number of files; two addresses may share one
	cacheMaxPage = 4 << 20 // larger pages are not stored
)

// pageCache is the slot for one page. A page that was stored with another list
// of allowed hosts, with other headers or with another limit of its size is ignored. If the cache cannot be
// used, it is treated as empty, because it only saves time.
type pageCache struct {
	refresh bool       // ignore stored pages
	dir     *state.Dir // nil means no cache
	key     string
}

// cachedPage is the content of a slot.
type cachedPage struct {
	Key  string   `json:"key"`
	Page *webPage `json:"page"`
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
	return &pageCache{dir: dir, refresh: f.opts.Refresh, key: fmt.Sprintf("%x", sum)}
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
		cache.store(ctx, p)
	}
	return p, err
}

func (c *pageCache) slot() string {
	return fmt.Sprintf("page-%02d", (int(c.key[0])^int(c.key[1])<<4)%cacheSlots)
}

// load returns the page if it is stored and has not expired, or nil.
func (c *pageCache) load(now time.Time) *webPage {
	if c.dir == nil || c.refresh {
		return nil
	}
	data, err := c.dir.Read(c.slot())
	if err != nil {
		return nil
	}
	var kept cachedPage
	if json.Unmarshal(data, &kept) != nil || kept.Key != c.key || kept.Page == nil {
		return nil
	}
	p := kept.Page
	if age := now.Sub(p.Fetched); age < 0 || age >= cacheTime {
		return nil
	}
	if p.url, err = parseAddress(p.Address); err != nil {
		return nil
	}
	p.cached = true
	return p
}

// store stores a page and removes expired ones.
func (c *pageCache) store(ctx context.Context, p *webPage) {
	if c.dir == nil || p.noStore || p.Status != 200 || len(p.Body) > cacheMaxPage {
		return
	}
	data, err := json.Marshal(cachedPage{Key: c.key, Page: p})
	if err != nil {
		return
	}
	if c.dir.Update(ctx, c.slot(), func([]byte) ([]byte, error) { return data, nil }) == nil {
		c.expire(time.Now())
	}
}

// expire removes expired pages.
func (c *pageCache) expire(now time.Time) {
	root, err := os.OpenRoot(c.dir.Path)
	if err != nil {
		return
	}
	defer root.Close()
	names, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return
	}
	for _, entry := range names {
		info, err := entry.Info()
		if err == nil && strings.HasPrefix(entry.Name(), "page-") &&
			!strings.HasSuffix(entry.Name(), ".lock") && now.Sub(info.ModTime()) > cacheTime {
			_ = root.Remove(entry.Name()) // may fail if another run has removed it
		}
	}
}
