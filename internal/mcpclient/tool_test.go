package mcpclient

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/registry"
)

func TestIdentityChangesWithTheSettings(t *testing.T) {
	server := stdioServer(t)
	base := string(identityOf(server))
	changed := server
	changed.Args = append(changed.Args, "--evil")
	if string(identityOf(changed)) == base {
		t.Error("other arguments, same identity")
	}
	changed = server
	changed.InheritEnv = true
	if string(identityOf(changed)) == base {
		t.Error("the whole environment, same identity")
	}
	web := httpServer("https://example.com/?key=$KEY")
	web.Headers = append(web.Headers, pair("Authorization", "Bearer s3cret"))
	if got := string(identityOf(web)); got != `{"httpUrl":"https://example.com/?key=$KEY","headers":["Authorization"]}` {
		t.Errorf("identity %s", got)
	}
}

// The identity is stored in the lock file, which is meant to be shared.
func TestIdentityDoesNotContainSecrets(t *testing.T) {
	server := httpServer("https://ada:s3cret@example.com/?key=s3cret&tenant=a")
	server.Args = []string{"--token", "s3cret", "--api-key=s3cret", "--verbose"}
	want := `{"args":["--token","***","--api-key=***","--verbose"],"httpUrl":"https://***@example.com/?key=***&tenant=a"}`
	if got := string(identityOf(server)); got != want {
		t.Errorf("identity %s, want %s", got, want)
	}
}

// FuzzTools checks that a valid tool survives in any listing, and that the
// result is valid.
func FuzzTools(f *testing.F) {
	for _, seed := range []string{oneTool, `{"name":"x","inputSchema":{"a":1e400},"description":null,"annotations":{}}`, `{"name":5}`, `[]`, `{"name":"neighbour"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !json.Valid(data) {
			return
		}
		s := New(Options{})
		tools, _ := s.requests.tools(listing{items: []json.RawMessage{json.RawMessage(`{"name":"neighbour"}`), data}}, false)
		if len(tools) == 0 || tools[0].ServerTool != "neighbour" {
			t.Fatalf("tools %v", tools)
		}
		for _, tool := range tools {
			if _, err := json.Marshal(tool.Definition); err != nil {
				t.Errorf("%s: %v", data, err)
			}
			if tool.Name != registry.ValidName(tool.ServerTool) || tool.Category != registry.CategoryOther {
				t.Errorf("name %q of %q, category %s", tool.Name, tool.ServerTool, tool.Category)
			}
		}
	})
}

// BenchmarkTools1000 converts a listing of 1,000 tools with 2.4 MB of schemas.
func BenchmarkTools1000(b *testing.B) {
	var items []json.RawMessage
	for i := range 1000 {
		items = append(items, json.RawMessage(fmt.Sprintf(`{"name":"tool_%d","description":"Does things.","inputSchema":{"type":"object","properties":{"a":{"type":"string","description":"%s"}}}}`, i, strings.Repeat("words ", 390))))
	}
	s := New(Options{})
	b.ReportAllocs()
	for b.Loop() {
		if tools, _ := s.requests.tools(listing{items: items}, false); len(tools) != 1000 {
			b.Fatal(len(tools))
		}
	}
}

// BenchmarkDiscover starts a server, lists its tools and stops it.
func BenchmarkDiscover(b *testing.B) {
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		b.Run(revision, func(b *testing.B) {
			server := stdioServer(b, "--tools", "10", "--protocol", revision)
			for b.Loop() {
				s := New(Options{Server: server, ProjectRoot: b.TempDir()})
				if _, _, err := s.Discover(b.Context()); err != nil {
					b.Fatal(err)
				}
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
