package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestFetchCache counts the requests that reach the server.
func TestFetchCache(t *testing.T) {
	hits := 0
	s, opts := site(t, func(w http.ResponseWriter, r *http.Request) {
		hits++
		switch r.URL.Path {
		case "/private":
			w.Header().Set("Cache-Control", "private, No-Store")
		case "/missing":
			w.WriteHeader(404)
		case "/moved":
			http.Redirect(w, r, "/", http.StatusFound)
		}
		fmt.Fprintf(w, "visit %d", hits)
	})
	opts.CacheDir = filepath.Join(t.TempDir(), "cache")
	token := "a"
	opts.Headers = func(context.Context, string) ([]Header, error) { return []Header{{"X", token}}, nil }
	expect := func(what, path, more, want string) {
		t.Helper()
		if r := fetch(t, opts, s.URL+path, more); !strings.Contains(r.Text(), want) {
			t.Errorf("%s: %q, want %q", what, r.Text(), want)
		}
	}
	expect("first", "/", "", "visit 1")
	expect("again", "/", "", "visit 1")
	expect("another format and part", "/#x", `,"format":"text","offset":6`, "1")
	expect("no-store", "/private", "", "visit 2")
	expect("no-store again", "/private", "", "visit 3")
	expect("an error", "/missing", "", "visit 4")
	expect("an error again", "/missing", "", "visit 5")
	token = "b"
	expect("another credential", "/", "", "visit 6")
	expect("a redirect", "/moved", "", "[redirected to "+s.URL+"/]")
	before := hits
	expect("a redirect again", "/moved", "", "[redirected to "+s.URL+"/]")
	if hits != before {
		t.Error("a redirect was requested again")
	}
	if r := fetch(t, opts, s.URL+"/moved"); !strings.Contains(r.Summary, "cached") {
		t.Errorf("summary: %s", r.Summary)
	}
	opts.MaxBytes = 3
	expect("cut", "/", "", "[the page is larger than 3 B")
	opts.MaxBytes = 0
	if r := fetch(t, opts, s.URL+"/"); strings.Contains(r.Text(), "larger") {
		t.Errorf("not cut any more: %q", r.Text())
	}
	opts.AllowHosts = nil
	expect("no longer allowed", "/", "", "fetch.allowHosts")

	files, _ := filepath.Glob(filepath.Join(opts.CacheDir, "fetch", "page-*"))
	for _, name := range files {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if len(files) == 0 {
		t.Error("no page was stored")
	}
}

func TestFetchCacheExpires(t *testing.T) {
	opts := Options{}
	opts.CacheDir = filepath.Join(t.TempDir(), "cache")
	f := &webFetch{opts: &opts}
	u := &url.URL{Scheme: "https", Host: "example.com", Path: "/"}
	c, now := f.cache(t.Context(), u), time.Now()
	page := &webPage{Address: u.String(), Status: 200, Body: []byte("x"), Fetched: now}
	c.store(page)
	for after, want := range map[time.Duration]bool{0: true, 14 * time.Minute: true, 15 * time.Minute: false, -time.Hour: false} {
		if got := c.load(now.Add(after)) != nil; got != want {
			t.Errorf("after %v: %v", after, got)
		}
	}
	file := filepath.Join(c.dir.Path, c.name)
	for _, damage := range []string{"", "{", "null", `{}`, `{"address":"file:///x","fetched":"` + now.Format(time.RFC3339Nano) + `"}`} {
		if err := os.WriteFile(file, []byte(damage), 0o600); err != nil {
			t.Fatal(err)
		}
		if p := c.load(now.Add(time.Second)); p != nil {
			t.Errorf("%q gives %+v", damage, p)
		}
	}
	old := now.Add(-time.Hour)
	if err := os.Chtimes(file, old, old); err != nil {
		t.Fatal(err)
	}
	u.Path = "/other"
	f.cache(t.Context(), u).store(page)
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("an expired page was not removed: %v", err)
	}
	// A cache that cannot be used is ignored.
	opts.CacheDir = file + "/not/a/folder"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c = f.cache(t.Context(), u)
	c.store(&webPage{Status: 200})
	if c.load(now) != nil {
		t.Error("a page was found without a cache")
	}
}
