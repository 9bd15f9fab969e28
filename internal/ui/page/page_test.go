package page

import (
	"crypto/sha256"
	"encoding/base64"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// hostile is text that tries to break out of every context in which text can occur.
const hostile = `"></code></td></pre><script>alert(1)</script></script><img src=x onerror=alert(2)>'&lt;` + "\u202e\x1b[2J"

func hostilePage() *Page {
	cost := []Cost{{hostile, 10, 2}, {"gemini", 1234567, 300000}}
	change := Change{Kind: "changed", Source: hostile, Name: hostile, Parts: []string{hostile}, Diff: "-" + hostile + "\n+" + hostile + "\n " + hostile + "\n\n"}
	tool := Tool{Name: hostile, DisplayName: hostile + "2", Description: hostile + "\nsecond", Source: hostile, Category: hostile, Decision: hostile, Reason: hostile, Origin: hostile,
		Facts: []Fact{{hostile, hostile}}, Examples: []Example{{hostile, hostile}}, Costs: cost, Change: &change, Schema: hostile,
		Params: []Param{{hostile, hostile, hostile, hostile, hostile, hostile, true}}}
	plain := Tool{Name: "read_file", Description: "Reads a file.", Source: "builtin", Category: "read", Decision: "allow", Costs: cost}
	return &Page{Title: hostile, Version: hostile, Made: time.Date(2026, 11, 22, 3, 4, 5, 0, time.UTC), Tools: []Tool{tool, plain}, Format: "gemini", Costs: cost,
		Lock: &Lock{File: hostile, Changes: []Change{change, {Kind: "removed", Name: "gone"}}}, Hidden: []Hidden{{hostile, hostile, hostile, hostile}}, Notices: []Notice{{hostile, hostile, hostile}}}
}

func hostileCharts() *Charts {
	calls := Calls{OK: 3, Errors: 1, Refused: 2, P50: 12.5, P95: 1234, Tokens: 56789}
	rows := []Row{{hostile, hostile, calls}, {"read_file", "builtin", calls}}
	start := time.Date(2026, 11, 25, 22, 0, 0, 0, time.UTC)
	return &Charts{Title: hostile, Selection: hostile, Version: hostile, Made: start, All: calls,
		Periods: []Period{{start, calls}, {start.Add(time.Hour), Calls{}}}, Tables: []Table{{Name: "tool", Rows: rows, More: 2}, {Name: "client"}}}
}

func parseConsole(t *testing.T) *html.Node {
	t.Helper()
	var b strings.Builder
	if err := WriteConsole(&b, hostile, hostile, "/console", []Link{{hostile, "/console/" + hostile}}); err != nil {
		t.Fatal(err)
	}
	return parsed(t, b.String())
}

func parseSignIn(t *testing.T) *html.Node {
	t.Helper()
	var b strings.Builder
	if err := WriteSignIn(&b, hostile, "/console", hostile); err != nil {
		t.Fatal(err)
	}
	return parsed(t, b.String())
}

func parse(t *testing.T, p *Page) *html.Node {
	t.Helper()
	var b strings.Builder
	if err := Write(&b, p); err != nil {
		t.Fatal(err)
	}
	return parsed(t, b.String())
}

func parseCharts(t *testing.T, c *Charts) *html.Node {
	t.Helper()
	var b strings.Builder
	if err := WriteCharts(&b, c); err != nil {
		t.Fatal(err)
	}
	return parsed(t, b.String())
}

func parsed(t *testing.T, page string) *html.Node {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func all(doc *html.Node, tag atom.Atom) []*html.Node {
	var out []*html.Node
	for n := range doc.Descendants() {
		if n.DataAtom == tag {
			out = append(out, n)
		}
	}
	return out
}

func attribute(n *html.Node, name string) string {
	i := slices.IndexFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
	if i < 0 {
		return ""
	}
	return n.Attr[i].Val
}

func content(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

// TestHostileTexts parses the page like a browser: it must contain only our own
// elements, scripts and attributes, whatever the texts are.
func TestHostileTexts(t *testing.T) {
	checkHostileTexts(t, parse(t, hostilePage()), script)
	checkHostileTexts(t, parseCharts(t, hostileCharts()), chartsScript)
	checkHostileTexts(t, parseConsole(t), consoleScript)
	checkHostileTexts(t, parseSignIn(t), "")
}

func checkHostileTexts(t *testing.T, doc *html.Node, script string) {
	t.Helper()
	if scripts := all(doc, atom.Script); len(scripts) != 1 || content(scripts[0]) != script {
		t.Errorf("%d scripts", len(scripts))
	}
	if images := all(doc, atom.Img); len(images) > 0 {
		t.Errorf("%d images", len(images))
	}
	for n := range doc.Descendants() {
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "src" || a.Key == "href" && !strings.HasPrefix(a.Val, "#") && !strings.HasPrefix(a.Val, "/console/") {
				t.Errorf("<%s %s=%q>", n.Data, a.Key, a.Val)
			}
		}
		if n.Type == html.TextNode && strings.ContainsAny(n.Data, "\u202e\x1b") {
			t.Errorf("an invisible character in %.60q", n.Data)
		}
	}
	if got, want := content(all(doc, atom.H1)[0]), strings.NewReplacer("\u202e", `\u202e`, "\x1b", `\x1b`).Replace(hostile); got != want {
		t.Errorf("the title is %q, want %q", got, want)
	}
}

// TestPolicy compares the content security policy with the content of the page.
func TestPolicy(t *testing.T) {
	checkPolicy(t, parse(t, hostilePage()))
	checkPolicy(t, parseCharts(t, hostileCharts()))
	checkPolicy(t, parseConsole(t))
	checkPolicy(t, parseSignIn(t))
}

func checkPolicy(t *testing.T, doc *html.Node) {
	t.Helper()
	policy := ""
	for _, m := range all(doc, atom.Meta) {
		if attribute(m, "http-equiv") == "Content-Security-Policy" {
			policy = attribute(m, "content")
		}
	}
	for directive, tag := range map[string]atom.Atom{"script-src": atom.Script, "style-src": atom.Style} {
		sum := sha256.Sum256([]byte(content(all(doc, tag)[0])))
		if want := directive + " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "';"; !strings.Contains(policy+";", want) {
			t.Errorf("the policy %q lacks %q", policy, want)
		}
	}
	if !strings.HasPrefix(policy, "default-src 'none';") {
		t.Errorf("the policy is %q", policy)
	}
}

// TestReadable checks accessibility: each control has a label, each part of the page
// has a heading, and all texts are readable without the script.
func TestReadable(t *testing.T) {
	doc := parse(t, hostilePage())
	for _, tag := range []atom.Atom{atom.Input, atom.Select} {
		for _, n := range all(doc, tag) {
			if n.Parent.DataAtom != atom.Label {
				t.Errorf("<%s id=%q> has no label", n.Data, attribute(n, "id"))
			}
		}
	}
	if lang := attribute(all(doc, atom.Html)[0], "lang"); lang != "en" {
		t.Errorf("lang = %q", lang)
	}
	ids := map[string]bool{}
	for n := range doc.Descendants() {
		if id := attribute(n, "id"); id != "" && ids[id] {
			t.Errorf("the id %q occurs twice", id)
		} else {
			ids[id] = true
		}
	}
	whole := content(doc)
	for _, want := range []string{"Reads a file.", "1,234,567", "This tool takes no params.", "Differences from", "gone", "Not offered", "Diagnostics", "second", "on 22 November 2026, 03:04 UTC"} {
		if !strings.Contains(whole, want) {
			t.Errorf("no %q", want)
		}
	}
}

func TestEmpty(t *testing.T) {
	doc := parse(t, &Page{Title: "empty"})
	if got := content(all(doc, atom.H1)[0]); got != "empty" {
		t.Errorf("the title is %q", got)
	}
}

// TestCharts checks that all values of the charts can be read as text, without the script.
func TestCharts(t *testing.T) {
	whole := content(parseCharts(t, hostileCharts()))
	for _, want := range []string{"4 calls", "12.5 ms median", "1.23 s 95th percentile", "25 Nov 22:00", "25 Nov 22:00: 3 ok, 1 errors, 2 refused", "25 Nov 23:00: 0 ok", "56,789", "By tool", "read_file builtin", "2 more with fewer calls", "time zone UTC"} {
		if !strings.Contains(whole, want) {
			t.Errorf("no %q", want)
		}
	}
	if strings.Contains(whole, "By client") {
		t.Error("a table without rows")
	}
	if whole := content(parseCharts(t, &Charts{Title: "empty"})); !strings.Contains(whole, "No calls.") || strings.Contains(whole, "Durations") {
		t.Errorf("without calls: %s", whole)
	}
}

func TestDuration(t *testing.T) {
	for ms, want := range map[float64]string{0: "0", 0.0004: "0.4 µs", 0.25: "250 µs", 0.9996: "1 ms", 12.345: "12.3 ms", 999.6: "1 s", 61_000: "61 s", 3_600_000: "1h0m0s"} {
		if got := duration(ms); got != want {
			t.Errorf("%v ms = %q, want %q", ms, got, want)
		}
	}
}

func TestScale(t *testing.T) {
	for most, want := range map[float64]float64{4: 4, 5: 5, 11: 20, 99: 100, 100: 100, 2010: 3000, 0.25: 0.3} {
		if got := scaleFor(most); math.Abs(got-want) > 1e-9 {
			t.Errorf("scaleFor(%v) = %v, want %v", most, got, want)
		}
	}
}
