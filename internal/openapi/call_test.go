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
