package picker

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func candidates(items ...Item) []candidate {
	out := make([]candidate, len(items))
	for i, item := range items {
		out[i] = newCandidate(item)
	}
	return out
}

// TestSearch checks that the items that a person means are found, and found first.
func TestSearch(t *testing.T) {
	items := []Item{
		{Name: "read_file", Source: "builtin", Text: "Reads a file of the workspace.", Also: "ReadFile cat"},
		{Name: "create_issue", Source: "mcp:github", Text: "Opens an issue."},
		{Name: "list_issues", Source: "mcp:github", Text: "Lists issues."},
		{Name: "issue", Source: "mcp:tracker", Text: "Shows one."},
		{Name: "thread_profile", Text: "Ünïcode Wörds in 日本語."},
		{Name: "todo_read", Text: "The list."},
		{Name: "redirect", Text: "Sends a response elsewhere."},
	}
	in := candidates(items...)
	for _, tt := range []struct {
		query string
		want  []string
	}{
		{"", []string{"read_file", "create_issue", "list_issues", "issue", "thread_profile", "todo_read", "redirect"}},
		{"issue", []string{"issue", "list_issues", "create_issue"}},
		{"ISS list", []string{"list_issues"}},
		{"read", []string{"read_file", "todo_read", "thread_profile"}},
		{"rf", []string{"read_file", "thread_profile"}},
		{"rdfile", []string{"read_file", "thread_profile"}},
		{"github open", []string{"create_issue"}},
		{"elsewhere", []string{"redirect"}},
		{"cat", []string{"read_file", "create_issue"}},
		{"日本", []string{"thread_profile"}},
		{"wörds", []string{"thread_profile"}},
		{"elif", nil},
		{"zz", nil},
		{"  ", []string{"read_file", "create_issue", "list_issues", "issue", "thread_profile", "todo_read", "redirect"}},
	} {
		var got []string
		for _, m := range search(tt.query, in) {
			got = append(got, items[m.index].Name)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.query, diff)
		}
	}
}

// TestMarks checks which letters are highlighted.
func TestMarks(t *testing.T) {
	for query, want := range map[string][]int{"read": {0, 1, 2, 3}, "rf": {0, 5}, "file read": {0, 1, 2, 3, 5, 6, 7, 8}, "workspace": nil, "rdfile": {0, 3, 5, 6, 7, 8}} {
		found := search(query, candidates(Item{Name: "read_file", Text: "of the workspace"}))
		if len(found) != 1 {
			t.Fatalf("%q finds %d", query, len(found))
		}
		if diff := cmp.Diff(want, found[0].marks); diff != "" {
			t.Errorf("%q (-want +got):\n%s", query, diff)
		}
	}
}

func FuzzSearch(f *testing.F) {
	f.Add("rf", "read_file", "text")
	f.Add("\xff", "a\xffb", "İ")
	f.Add("日", "x日y", "")
	f.Fuzz(func(t *testing.T, query, name, text string) {
		for _, m := range search(query, candidates(Item{Name: name, Text: text})) {
			nameSpans(name, m.marks, 10, 0) // must not panic
		}
	})
}

func BenchmarkSearch(b *testing.B) {
	var items []Item
	for i := range 10_000 {
		items = append(items, Item{Name: fmt.Sprintf("server%d__create_thing_%d", i%100, i), Text: "Creates a thing in the system and returns what was created, with its id and its address, or says why it could not."})
	}
	in := candidates(items...)
	for b.Loop() {
		search("crthing addr", in)
	}
}
