package openapi

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

// Text is decoded as its type or its byte order mark says.
func TestDecoded(t *testing.T) {
	for _, c := range []struct{ charset, body, want string }{
		{"", "\ufeffé", "é"},
		{"UTF-8", "\xe9", "\ufffd"},
		{"latin1", "caf\xe9", "café"},
		{"iso-8859-1", "\x80", "€"}, // as browsers read it
		{"Shift_JIS", "\x93\xfa\x96\x7b", "日本"},
		{"gbk", "\xc4\xe3", "你"},
		{"windows-1251", "\xc4\xe0", "Да"},
		{"utf-16", "a\x00,\x00", "a,"},
		{"utf-16", "\xfe\xff\x00a", "a"},
		{"nothing", "é\xff", "é\ufffd"},
		{"", `<?xml version="1.0" encoding="windows-1251"?>` + "<a>\xc4\xe0</a>", `<?xml version="1.0" encoding="windows-1251"?><a>Да</a>`},
		{"", `<?xml version="1.0" encoding="latin1"?><a>é</a>`, `<?xml version="1.0" encoding="latin1"?><a>é</a>`},
	} {
		if got := decoded([]byte(c.body), c.charset); got != c.want {
			t.Errorf("%q in %q is %q, want %q", c.body, c.charset, got, c.want)
		}
	}
}

// BenchmarkCall measures a call of an operation beside the request that it sends.
func BenchmarkCall(b *testing.B) {
	const answer = `{"id":1,"number":7,"title":"It fails","state":"open","labels":[{"name":"bug"}]}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, answer)
	}))
	defer server.Close()
	document, err := filepath.Abs("../../testdata/openapi/github.json")
	if err != nil {
		b.Fatal(err)
	}
	s := New(Options{API: settings.API{Spec: document, Server: settings.Server{Name: "github", URL: server.URL}}, Limits: Limits{Document: 64 << 20, Result: 1 << 20}})
	defer s.Close()
	tools, _, err := s.Discover(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	var tool *registry.Tool
	for i := range tools {
		if tools[i].Name == "issues/create-comment" {
			tool = &tools[i]
		}
	}
	b.Run("request", func(b *testing.B) {
		for b.Loop() {
			resp, err := server.Client().Get(server.URL + "/repos/a/b/issues/7/comments")
			if err != nil {
				b.Fatal(err)
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	})
	b.Run("call", func(b *testing.B) {
		for b.Loop() {
			result, err := tool.Run(b.Context(), registry.Call{Tool: tool.Name, Params: []byte(`{"owner":"a","repo":"b","issue_number":7,"body":"Thanks."}`)})
			if err != nil || result.IsError {
				b.Fatal(result, err)
			}
		}
	})
}
