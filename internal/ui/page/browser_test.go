package page

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html/atom"

	"github.com/toolreg/toolreg/internal/ui/browsertest"
)

// probe is a page that uses the page under test as a person would and writes its
// observations to its own body.
const probe = `<iframe src="tools.html" width="900" height="900"></iframe><script>
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
  setTimeout(() => { seen.title = page.title.slice(0, 10); done(seen); }, 200);
});</script>`

// TestBrowser uses the page in headless Chromium: the content security policy allows
// its script and nothing else.
func TestBrowser(t *testing.T) {
	dir := t.TempDir()
	p := &Page{Title: "a project", Format: "gemini", Costs: []Cost{{"gemini", 40, 10}, {"other", 80, 20}}, Tools: []Tool{
		{Name: "write_file", Description: hostile, Source: "builtin", Category: "write", Decision: "ask", Costs: []Cost{{"gemini", 12, 3}, {"other", 4, 1}}},
		{Name: "read_file", Description: "Reads a file.", Source: "builtin", Category: "read", Decision: "allow", Costs: []Cost{{"gemini", 16, 4}, {"other", 2000, 1234}}},
	}}
	var b strings.Builder
	if err := Write(&b, p); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "tools.html", b.String())
	seen := browsertest.Observe(t, dir, probe)
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

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestChartsInBrowser reads the page of statistics in a reader's time zone.
func TestChartsInBrowser(t *testing.T) {
	var b strings.Builder
	if err := WriteCharts(&b, hostileCharts()); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, dir, "charts.html", b.String())
	seen := browsertest.Observe(t, dir, `<iframe src="charts.html" width="900" height="900"></iframe><script>
addEventListener("load", () => {
  const page = document.querySelector("iframe").contentDocument, text = (selector) => page.querySelector(selector).textContent;
  done({ zone: text("#zone"), label: text("figure text[data-time]"), tip: text("figure title[data-time]"), row: text("#periods time"), color: getComputedStyle(page.querySelector("rect.errors")).fill });
});</script>`, "TZ=Asia/Tokyo")
	want := map[string]string{"zone": "Asia/Tokyo", "label": "26 Nov 07:00", "tip": "26 Nov 07:00: 3 ok, 1 errors, 2 refused", "row": "26 Nov 07:00", "color": "rgb(164, 34, 43)"}
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
