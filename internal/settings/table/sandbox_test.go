package table

import (
	"testing"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/settings/document"
)

func TestParseNetwork(t *testing.T) {
	for value, want := range map[string]string{
		`"none"`: "none", `"all"`: "all", `[]`: "",
		`["Example.com", "a.b:8443", "*.example.org:*", "[::1]:80", "::1", "127.0.0.1"]`: " example.com a.b:8443 *.example.org:* [::1]:80 [::1] 127.0.0.1",
		`"example.com"`: "error", `true`: "error", `[1]`: "error", `[""]`: "error", `["https://a"]`: "error", `["a/b"]`: "error", `["a:0"]`: "error",
		`["a:x"]`: "error", `["*"]`: "error", `["a b"]`: "error", `["a:70000"]`: "error", `["*.*:1"]`: "error", `[":443"]`: "error", `["a@b"]`: "error",
	} {
		doc, problems := document.Parse("x.json", []byte(`{"n": `+value+`}`))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		word, hosts, err := ParseNetwork(doc.Root.Members[0].Value)
		got := word
		for _, h := range hosts {
			got += " " + h
		}
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%s: %q, %v, want %q", value, got, err, want)
		}
	}
}

// A list of hosts that are compared as they are has no patterns and no addresses of pages.
func TestCheckHosts(t *testing.T) {
	for value, want := range map[string]bool{
		"localhost": true, "LOCALHOST:3000": true, "127.0.0.1": true, "::1": true, "[::1]:80": true, "a.internal.": true,
		"bücher.example:80": true, "my_host": true,
		"http://localhost:3000": false, "localhost/": false, "localhost:3000/x": false, "*": false, "*.internal": false,
		"localhost:*": false, "localhost:0": false, "localhost:99999": false, "10.0.0.0/8": false, "": false, ":80": false, "a b": false,
	} {
		doc, problems := document.Parse("x.json", []byte(`{"n": ["a", "`+value+`"]}`))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		if problem, hint := checkHosts(doc.Root.Members[0].Value); (problem == "") != want || (problem == "") != (hint == "") {
			t.Errorf("%q: %q, %q", value, problem, hint)
		}
	}
}

func TestLooserNetwork(t *testing.T) {
	order := []string{`"none"`, `"loopback"`, `["a:1"]`, `["a:1","b:1"]`, `"all"`}
	node := func(text string) *jsonx.Value {
		doc, _ := document.Parse("x.json", []byte(`{"n": `+text+`}`))
		return doc.Root.Members[0].Value
	}
	for i, now := range order {
		for j, was := range order {
			if looserNetwork(node(now), node(was)) != (i > j) {
				t.Errorf("%s after %s: looser is %v", now, was, i <= j)
			}
		}
	}
	if !looserNetwork(node(`["c:1"]`), node(`["a:1"]`)) {
		t.Error("another host is not reported as looser")
	}
}
