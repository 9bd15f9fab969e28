package oauth

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// The client metadata document in docs says of the client what a registration says.
func TestPublishedDocument(t *testing.T) {
	data, err := os.ReadFile("../../docs/client.json")
	if err != nil {
		t.Fatal(err)
	}
	var id struct {
		ID string `json:"client_id"`
	}
	var got oauthex.ClientRegistrationMetadata
	if err := json.Unmarshal(data, &id); err != nil || !isDocument(id.ID) {
		t.Errorf("client_id %q is not the address of a document (%v)", id.ID, err)
	}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	want := clientMetadata("http://127.0.0.1:8765/callback", methodNone)
	want.RedirectURIs = append(want.RedirectURIs, "http://127.0.0.1/callback")
	if diff := cmp.Diff(want, &got); diff != "" {
		t.Error("-want +got:\n", diff)
	}
}

// The response to a registration may contain a secret, so errors do not quote
// it. They contain the reason for the failure.
func TestRegistrationThatFails(t *testing.T) {
	tests := []struct {
		name   string
		status int
		body   string
		want   string
	}{
		{"refused", 400, `{"error":"invalid_redirect_uri","error_description":"s3cret"}`, `it returned "invalid_redirect_uri"`},
		{"not allowed", 403, `s3cret`, "it returned 403 Forbidden"},
		{"redirected", 307, ``, "it returned 307 Temporary Redirect"},
		{"broken", 201, `{"client_id":"a","client_secret":"s3cret"`, "its answer cannot be used"},
		{"no client id", 201, `{"client_secret":"s3cret"}`, "its answer cannot be used"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t)
			s.wrapped(func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path != "/register" {
						next.ServeHTTP(w, r)
						return
					}
					w.Header().Set("Content-Type", "application/json")
					w.Header().Set("Location", "/elsewhere")
					w.WriteHeader(tt.status)
					_, _ = w.Write([]byte(tt.body))
				})
			})
			_, err := s.client(t, nil).Login(t.Context(), LoginOptions{Browse: browse(t)})
			if err == nil || !strings.HasSuffix(err.Error(), ": "+tt.want) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}
