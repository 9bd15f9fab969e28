//go:build unix

package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/rogpeppe/go-internal/testscript"
)

// registryCommand is "registry DIR": it starts a registry of MCP servers at $REGISTRY with the
// entries in the files of DIR, which have the form of its answers. Below other paths it
// misbehaves: /elsewhere and /within redirect, /big sends 100 MB, /cyclic repeats its cursors,
// /endless always has one more page, /wrong answers with another server, /html is none.
// /count has the number of requests, /files/ the files of DIR.
func registryCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: registry DIR")
	}
	entries := func() []registryEntry { return readRegistry(ts.MkAbs(args[0])) }
	var requests atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("/v0.1/servers", func(w http.ResponseWriter, r *http.Request) { listRegistry(w, r, entries()) })
	mux.HandleFunc("/v0.1/servers/{name}/versions/{version}", func(w http.ResponseWriter, r *http.Request) {
		for _, e := range entries() {
			version := r.PathValue("version")
			if e.name() == r.PathValue("name") && (version == e.version() || version == "latest" && e.latest()) {
				answerJSON(w, e)
				return
			}
		}
		http.NotFound(w, r)
	})
	mux.HandleFunc("/elsewhere/", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://localhost:"+r.Host[strings.LastIndexByte(r.Host, ':')+1:]+strings.TrimPrefix(r.URL.RequestURI(), "/elsewhere"), http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/within/", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, strings.TrimPrefix(r.URL.RequestURI(), "/within"), http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/big/", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"servers":[],"filler":"`)
		for block := strings.Repeat("x", 1<<20); ; {
			if _, err := io.WriteString(w, block); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/cyclic/", func(w http.ResponseWriter, r *http.Request) {
		next := map[string]string{"": "a", "a": "b", "b": "a"}[r.URL.Query().Get("cursor")]
		answerJSON(w, map[string]any{"servers": entries(), "metadata": map[string]string{"nextCursor": next}})
	})
	mux.HandleFunc("/endless/", func(w http.ResponseWriter, r *http.Request) {
		answerJSON(w, map[string]any{"servers": entries()[:1], "metadata": map[string]string{"nextCursor": r.URL.Query().Get("cursor") + "x"}})
	})
	mux.HandleFunc("/wrong/", func(w http.ResponseWriter, _ *http.Request) { answerJSON(w, entries()[0]) })
	mux.HandleFunc("/private/", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	mux.HandleFunc("/html/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") })
	mux.Handle("/files/", http.StripPrefix("/files/", http.FileServer(http.Dir(ts.MkAbs(args[0])))))
	mux.HandleFunc("/count", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, requests.Load()) })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		mux.ServeHTTP(w, r)
	}))
	ts.Defer(server.Close)
	ts.Setenv("REGISTRY", server.URL)
}

// packCommand is "pack DIR FILE": it packs a folder as a bundle and sets SHA256 to its sum.
func packCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: pack DIR FILE")
	}
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	ts.Check(w.AddFS(os.DirFS(ts.MkAbs(args[0]))))
	ts.Check(w.Close())
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), b.Bytes(), 0o600))
	ts.Setenv("SHA256", fmt.Sprintf("%x", sha256.Sum256(b.Bytes())))
}

// registryEntry is an entry of an answer.
type registryEntry map[string]any

func (e registryEntry) at(path ...string) any {
	var v any = map[string]any(e)
	for _, name := range path {
		object, _ := v.(map[string]any)
		v = object[name]
	}
	return v
}

func (e registryEntry) name() string    { return fmt.Sprint(e.at("server", "name")) }
func (e registryEntry) version() string { return fmt.Sprint(e.at("server", "version")) }
func (e registryEntry) latest() bool {
	return e.at("_meta", "io.modelcontextprotocol.registry/official", "isLatest") == true
}

// readRegistry returns the entries in the files of a folder.
func readRegistry(dir string) []registryEntry {
	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	var out []registryEntry
	for _, file := range files {
		var page struct{ Servers []registryEntry }
		data, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(data, &page)
		}
		if err != nil {
			panic(fmt.Sprint(file, ": ", err))
		}
		out = append(out, page.Servers...)
	}
	return out
}

// listRegistry answers with two entries at a time, as the official registry does with more.
func listRegistry(w http.ResponseWriter, r *http.Request, entries []registryEntry) {
	query := r.URL.Query()
	word := query.Get("search")
	if len(word) < 3 {
		http.Error(w, "search must contain at least 3 characters", http.StatusUnprocessableEntity)
		return
	}
	entries = slices.DeleteFunc(entries, func(e registryEntry) bool {
		return !strings.Contains(strings.ToLower(e.name()), strings.ToLower(word)) || query.Get("version") == "latest" && !e.latest()
	})
	start, _ := strconv.Atoi(query.Get("cursor"))
	end, next := min(start+2, len(entries)), ""
	if end < len(entries) {
		next = url.QueryEscape(strconv.Itoa(end))
	}
	answerJSON(w, map[string]any{"servers": entries[start:end], "metadata": map[string]any{"nextCursor": next, "count": end - start}})
}

func answerJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the client may have gone
}
