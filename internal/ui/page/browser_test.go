package page

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html/atom"
)

// probe is a page that uses the page under test as a person would and writes its
// observations to its own body.
const probe = `<body><iframe src="tools.html" width="900" height="900"></iframe><script>
addEventListener("load", () => {
  const page = document.querySelector("iframe").contentDocument, $ = (id) => page.getElementById(id), seen = {};
  const shown = () => Array.from(page.querySelectorAll(".tool"), (t) => t.hidden ? "" : t.querySelector(".name").textContent.slice(0, 10)).filter(Boolean).join(" ");
  const set = (id, value, event) => { $(id).value = value; $(id).dispatchEvent(new Event(event)); };
  seen.filters = String(!$("filters").hidden);
  seen.all = $("count").textContent;
  seen.styled = getComputedStyle(page.querySelector(".tag")).borderRadius;
  set("query", "READS a", "input"); seen.search = shown() + " | " + $("count").textContent;
  set("query", "no such thing", "input"); seen.none = shown() + String($("nothing").hidden);
  $("clear").click(); seen.cleared = $("count").textContent;
  set("category", "read", "change"); seen.category = shown();
  set("category", "", "change"); set("format", "other", "change"); seen.cost = page.querySelectorAll(".tokens")[1].textContent;
  set("sort", "cost", "change"); seen.sorted = shown();
  page.body.insertAdjacentHTML("beforeend", "<img src=x onerror='document.title=\"owned\"'>");
  const s = page.createElement("script"); s.textContent = "document.title='owned'"; page.body.append(s);
  setTimeout(() => { seen.title = page.title.slice(0, 10); document.body.textContent = "SEEN" + JSON.stringify(seen) + "END"; }, 200);
});</script>`

// TestBrowser uses the page in headless Chromium: the content security policy allows
// its script and nothing else.
func TestBrowser(t *testing.T) {
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed; make page installs it")
	}
	dir := t.TempDir()
	p := &Page{Title: "a project", Format: "gemini", Costs: []Cost{{"gemini", 40, 10}, {"other", 80, 20}}, Tools: []Tool{
		{Name: "write_file", Description: hostile, Source: "builtin", Category: "write", Decision: "ask", Costs: []Cost{{"gemini", 12, 3}, {"other", 4, 1}}},
		{Name: "read_file", Description: "Reads a file.", Source: "builtin", Category: "read", Decision: "allow", Costs: []Cost{{"gemini", 16, 4}, {"other", 2000, 1234}}},
	}}
	var b strings.Builder
	if err := Write(&b, p); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"tools.html": b.String(), "probe.html": probe} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dom, err := exec.CommandContext(ctx, chromium, "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", "--user-data-dir="+filepath.Join(dir, "profile"),
		"--virtual-time-budget=10000", "--dump-dom", "file://"+filepath.Join(dir, "probe.html")).Output()
	if err != nil {
		t.Fatalf("running chromium: %v", err)
	}
	_, rest, _ := strings.Cut(string(dom), "SEEN")
	text, _, ok := strings.Cut(rest, "END")
	var seen map[string]string
	if err := json.Unmarshal([]byte(text), &seen); !ok || err != nil {
		t.Fatalf("%v in %s", err, dom)
	}
	want := map[string]string{
		"filters": "true", "styled": "99px", "title": "a project:",
		"all":    "2 of 2 tools, 10 tokens per request",
		"search": "read_file | 1 of 2 tools, 4 tokens per request",
		"none":   "false", "cleared": "2 of 2 tools, 10 tokens per request",
		"category": "read_file", "cost": "1,234", "sorted": "read_file write_file",
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWithoutScript checks that elements that only work with the script are hidden
// without it.
func TestWithoutScript(t *testing.T) {
	doc := parse(t, hostilePage())
	for n := range doc.Descendants() {
		if n.DataAtom == atom.Button || n.DataAtom == atom.Select || n.DataAtom == atom.Input {
			hidden := false
			for p := n.Parent; p != nil; p = p.Parent {
				for _, a := range p.Attr {
					hidden = hidden || a.Key == "hidden"
				}
			}
			if !hidden {
				t.Errorf("<%s id=%q> is shown but has no effect", n.Data, attribute(n, "id"))
			}
		}
	}
}
