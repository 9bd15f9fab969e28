package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/ui/browsertest"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// built builds the site of this repository and returns its folder and its pages by address.
func built(t *testing.T) (string, map[string]*html.Node) {
	t.Helper()
	dir := t.TempDir()
	if err := build("../..", dir); err != nil {
		t.Fatal(err)
	}
	pages := map[string]*html.Node{}
	err := filepath.WalkDir(dir, func(file string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(file) != ".html" {
			return err
		}
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close()
		rel, err := filepath.Rel(dir, file)
		if err == nil {
			pages[rel], err = html.Parse(f)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir, pages
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// Every link within the site leads to a page and a heading, nothing is loaded from elsewhere,
// and the sidebar has every page.
func TestLinksAndSidebar(t *testing.T) {
	dir, pages := built(t)
	ids := map[string]bool{}
	for address, page := range pages {
		for n := range page.Descendants() {
			if id := attribute(n, "id"); id != "" {
				if ids[address+"#"+id] {
					t.Errorf("%s has two elements %s", address, id)
				}
				ids[address+"#"+id] = true
			}
		}
	}
	linked := map[string]bool{"index.html": true}
	for address, page := range pages {
		for n := range page.Descendants() {
			target := attribute(n, "href") + attribute(n, "src")
			if target == "" {
				continue
			}
			if strings.Contains(target, ":") {
				if n.DataAtom != atom.A {
					t.Errorf("%s loads %s from elsewhere", address, target)
				}
				continue
			}
			file, anchor, _ := strings.Cut(target, "#")
			to := address
			if file != "" {
				to = filepath.Join(filepath.Dir(address), file)
			}
			if _, err := os.Stat(filepath.Join(dir, to)); err != nil {
				t.Errorf("%s: the link %s leads nowhere", address, target)
			} else if anchor != "" && !ids[to+"#"+anchor] {
				t.Errorf("%s: no heading matches the link %s", address, target)
			}
			if address == "index.html" {
				linked[to] = true
			}
		}
	}
	for address := range pages {
		if !linked[address] {
			t.Errorf("the sidebar has no link to %s", address)
		}
	}
}

var fenced = regexp.MustCompile("(?ms)^```[a-z]*(?: file=\\S+)?\n(.*?)^```$")

// Code is shown as it stands in the source, byte for byte.
func TestCodeIsKept(t *testing.T) {
	_, pages := built(t)
	for _, name := range []string{"start/loop", "start/ci", "plugins", "settings", "reference/commands"} {
		source, err := os.ReadFile(filepath.Join("../../docs", name+".md"))
		if err != nil {
			t.Fatal(err)
		}
		var want, got []string
		for _, m := range fenced.FindAllStringSubmatch(string(source), -1) {
			want = append(want, m[1])
		}
		for n := range pages[name+".html"].Descendants() {
			if n.DataAtom == atom.Pre {
				got = append(got, n.FirstChild.FirstChild.Data)
			}
		}
		if len(want) == 0 || !slices.Equal(want, got) {
			t.Errorf("%s: (-want +got)\n%s", name, cmp.Diff(want, got))
		}
	}
}

// A page with a link that leads nowhere is an error, not a broken link.
func TestBrokenLink(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{"docs/README.md": "# Index\n\n[a](nothing.md)\n", "CHANGELOG.md": "# Changes\n"} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := build(root, t.TempDir()); err == nil || !strings.Contains(err.Error(), "docs/README.md: the link nothing.md leads nowhere") {
		t.Errorf("got %v", err)
	}
}

// probe uses the search of a page as a person would and writes what it sees to its own body.
const probe = `<iframe src="start/loop.html" width="1200" height="900"></iframe><script>
addEventListener("load", () => {
  const frame = document.querySelector("iframe"), page = frame.contentDocument, seen = {};
  const input = page.querySelector("#site-search input"), list = page.querySelector("#site-search ol");
  const type = (text) => { input.value = text; input.dispatchEvent(new Event("input")); };
  const first = () => list.querySelector("a")?.getAttribute("href") || list.textContent;
  seen.shown = String(!page.getElementById("site-search").hidden);
  page.dispatchEvent(new KeyboardEvent("keydown", {key: "/", bubbles: true}));
  seen.focus = page.activeElement.tagName;
  const search = () => {
    type("Merging");
    if (!list.children.length) return setTimeout(search, 50); // the index is not loaded yet
    seen.heading = first();
    type("qqzzxx settings"); seen.nothing = first();
    type("rename a tool"); seen.words = first();
    input.dispatchEvent(new KeyboardEvent("keydown", {key: "Escape", bubbles: true})); seen.closed = String(list.children.length);
    done(seen);
  };
  search();
});</script>`

// TestSearch uses the search in headless Chromium, from a folder, without a server.
func TestSearch(t *testing.T) {
	dir, _ := built(t)
	seen := browsertest.Observe(t, dir, probe)
	want := map[string]string{"shown": "true", "focus": "INPUT", "heading": "../settings.html#merging", "nothing": "Nothing found.",
		"words": "../servers.html#names-of-tools", "closed": "0"}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
