package uri_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/uri"
)

func TestCanonical(t *testing.T) {
	for _, tt := range []struct {
		want string
		of   []string
	}{
		{"file:///contracts/a", []string{
			"file:///contracts/a", "FILE:///contracts/a", "file:/contracts/a", "file:contracts/a", "file:////contracts/a", "file://///contracts//a",
			"file://localhost/contracts/a", "file://LOCALHOST/contracts/a",
			"file:///docs/../contracts/a", "file:///docs/%2e%2E/contracts/./a", "file:///%63ontracts/a", "file:///%2563ontracts/a", "file:///%252563ontracts/a",
			`file:\\\contracts\a`, "file:///contracts%2Fa", "file:///contracts%5Ca", " file:///contr\tacts/a\n",
		}},
		{"file:///C:/x", []string{"file:///C:/x", "file:///C|/x", "file://C:/x", "file:/C:/x"}},
		{"file://server/share/a", []string{"file://server/share/a", "file://SERVER/share/./a"}},
		{"https://example.com/a?b", []string{"https://example.com/a?b", "HTTPS://Example.com:443/a?b", "https:/example.com/a?b", "https:example.com/x/../a?b", "https://example.com./a?b"}},
		{"https://example.com:8443/a", []string{"https://example.com:8443/a"}},
		{"note://Owner/a", []string{"note://Owner/a", "NOTE://Owner//a", "note://Owner/b/../a"}},
		{"note:///a", []string{"note:///a", "note:////a"}},
		{"note:a", []string{"note:a", "note:b/../a"}},
		{"file:///%zz/a", []string{"file:///%zz/a", "file:///%zz/b/../a", "file:///%zz/%61"}},
		{"no uri", []string{"no uri", "no%20uri"}},
		{"", []string{"", "\n"}},
	} {
		for _, of := range tt.of {
			if got := uri.Canonical(of); got != tt.want {
				t.Errorf("%q: %q, want %q", of, got, tt.want)
			}
			if again := uri.Canonical(tt.want); again != tt.want {
				t.Errorf("%q is not the canonical form of itself: %q", tt.want, again)
			}
		}
	}
}

func TestReadings(t *testing.T) {
	for of, want := range map[string][]string{
		"file:///a":               {"file:///a"},
		"file:///a/%2e%2e/b":      {"file:///a/%2e%2e/b", "file:///a/../b", "file:///b"},
		"file:///%2561":           {"file:///%2561", "file:///%61", "file:///a"},
		"note://docs/../secret/a": {"note://docs/../secret/a", "note://secret/a", "note://docs/secret/a"},
	} {
		if diff := cmp.Diff(want, uri.Readings(of)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", of, diff)
		}
	}
}

func TestPatterns(t *testing.T) {
	for glob, want := range map[string][]string{
		"file:///docs/*":         {"file:///docs/*"},
		"FILE://localhost/docs*": {"FILE://localhost/docs*", "file:///docs*"},
		"file:///my%20docs/*":    {"file:///my%20docs/*", "file:///my docs/*"},
		"file:///a%2A":           {"file:///a%2A", `file:///a\*`},
		"file://*":               {"file://*"},
		"file:/*":                {"file:/*", "file:///*"},
		"{file,https}://x/*":     {"{file,https}://x/*"},
		"https:*":                {"https:*"},
		"*secret*":               {"*secret*"},
	} {
		if diff := cmp.Diff(want, uri.Patterns(glob)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", glob, diff)
		}
	}
}

// However often a URI is escaped, it is read in a time that grows with its length alone.
func TestDeepEscapes(t *testing.T) {
	if got := uri.Canonical("file:///" + "%" + strings.Repeat("25", 1<<19) + "61"); got != "file:///a" {
		t.Errorf("%d bytes", len(got))
	}
}

func FuzzCanonical(f *testing.F) {
	for _, s := range []string{"file:///a/../b", "https://a@b:80/c?d#e", `x:\\a`, "file://c|/%2e%2e%2f", "%25%2541", "a:b:c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := uri.Canonical(s)
		if strings.HasPrefix(got, "file:///") && strings.Contains(got, "/../") {
			t.Errorf("%q: %q has dot segments", s, got)
		}
		if all := uri.Readings(s); all[len(all)-1] != got {
			t.Errorf("%q: the last of %q is not %q", s, all, got)
		}
		uri.Loose(s)
		uri.Patterns(s)
		uri.LoosePattern(s)
	})
}
