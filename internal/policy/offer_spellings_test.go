package policy_test

import (
	"math/rand/v2"
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/policy"
)

// spellings returns URIs that a server may take for the file a in a folder.
func spellings(folder string) []string {
	var out []string
	for _, scheme := range []string{"file", "FILE", "fIlE"} {
		for _, root := range []string{":///", ":/", ":", ":////", "://localhost/", "://LOCALHOST./", "://127.0.0.1/", "://[::1]:80/", "://u@localhost/", ":\\\\\\", "://other/", "://"} {
			for _, in := range []string{folder, "%" + hex(folder[0]) + folder[1:], "%25" + hex(folder[0]) + folder[1:], "x/../" + folder, "./" + folder, "x/%2e%2e/" + folder, "x%2F..%2f" + folder, folder[:2] + "\t" + folder[2:]} {
				for _, tail := range []string{"/a", "//a", "%2Fa", "/./a", "\\a", "/a?x=1", "/a#y", "/b/../a"} {
					out = append(out, scheme+root+in+tail)
				}
			}
		}
	}
	return out
}

func hex(c byte) string { return string("0123456789abcdef"[c>>4]) + string("0123456789abcdef"[c&15]) }

// A rule that denies resources holds for every spelling of their URIs, whatever the spelling of the
// rule.
func TestDeniedResourcesInEverySpelling(t *testing.T) {
	for _, glob := range []string{"file:///contracts/*", "FILE:///contracts/*", "file:/contracts/*", "file:////contracts/*", "file://localhost/contracts/*", "file:///%63ontracts/*", "file:///x/../contracts/*", "file:///contracts/a"} {
		p := &policy.Policy{Rules: []policy.Rule{{Resource: glob, Decision: policy.Deny}}}
		if err := p.Rules[0].Validate(); err != nil {
			t.Fatal(err)
		}
		for _, u := range spellings("contracts") {
			if v := p.DecideOffer(t.Context(), policy.Offer{Server: "s", URI: u}); v.Decision != policy.Deny {
				t.Errorf("%s: %q is allowed", glob, u)
			}
		}
		for _, u := range spellings("catalogue") {
			if v := p.DecideOffer(t.Context(), policy.Offer{Server: "s", URI: u}); v.Decision != policy.Allow {
				t.Errorf("%s: %q is denied", glob, u)
			}
		}
	}
}

// A rule that allows resources allows no URI that a server may take for another file.
func TestAllowedResourcesAreNoOthers(t *testing.T) {
	p := &policy.Policy{Rules: []policy.Rule{{Resource: "file:///docs/*", Decision: policy.Allow}, {Resource: "*", Decision: policy.Deny}}}
	for i := range p.Rules {
		if err := p.Rules[i].Validate(); err != nil {
			t.Fatal(err)
		}
	}
	words := []string{"/", "/", "/", "docs", "docs", "..", ".", "%2e", "%2E%2e", "%2f", "%252e", "%255c", "\\", "secret", "localhost", "?", "#", "%", "a", "\t", ":", "@"}
	random := rand.New(rand.NewPCG(1, 2))
	allowed := 0
	for range 60_000 {
		u := "file:" + []string{"///docs/", "///", "//localhost/docs/", "/docs/", "//"}[random.IntN(5)]
		for range random.IntN(7) {
			u += words[random.IntN(len(words))]
		}
		if v := p.DecideOffer(t.Context(), policy.Offer{Server: "s", URI: u}); v.Decision != policy.Allow {
			continue
		}
		allowed++
		for reader, file := range readers(u) {
			if file != "/docs" && !strings.HasPrefix(file, "/docs/") {
				t.Fatalf("%q is allowed, and for %s it is %s", u, reader, file)
			}
		}
	}
	if allowed < 300 {
		t.Errorf("only %d URIs were allowed", allowed)
	}
}

// readers returns the file that servers of several kinds take a URI for.
func readers(u string) map[string]string {
	out := map[string]string{}
	if parsed, err := url.Parse(u); err == nil && (parsed.Host == "" || parsed.Host == "localhost") {
		out["a parser"] = path.Clean("/" + parsed.Path)
	}
	rest := strings.TrimLeft(u[len("file:"):], "/")
	rest = strings.TrimPrefix(rest, "localhost/")
	for range 3 {
		out["a decoder of "+rest] = path.Clean("/" + rest)
		out["a Windows decoder of "+rest] = path.Clean("/" + strings.ReplaceAll(rest, "\\", "/"))
		decoded, err := url.PathUnescape(rest)
		if err != nil {
			break
		}
		rest = decoded
	}
	return out
}
