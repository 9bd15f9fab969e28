package exec

import (
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/registry"
)

// The note about an edit follows any content of the result, and its length is
// limited.
func TestEditNote(t *testing.T) {
	many := func(line string, n int) string { return strings.Repeat(line+"\n", n) }
	picture := registry.Content{Type: registry.ContentImage, MIMEType: "image/png", Data: []byte("P")}
	for _, tt := range []struct {
		name, proposed, final string
		content               []registry.Content
		parts, most           int
		want                  string
	}{
		{"a text", "a\n", "b\n", []registry.Content{registry.TextContent("done")}, 1, 200, "done\nThe user edited the content before approving it. The difference from yours, in f:\n--- yours\n+++ the user's\n@@ -1 +1 @@\n-a\n+b\n"},
		{"no text", "a\n", "b\n", []registry.Content{picture}, 2, 200, "\n+b\n"},
		{"nothing", "a\n", "", nil, 1, 200, "\n-a\n"},
		{"much", many("a", 20_000), many("b", 20_000), nil, 1, maxDiff + 200, "… (cut; read the file)"},
		{"too much", many("a", maxCompared/2+1), "", nil, 1, 200, "The user edited the content before approving it. It is too long to show"},
		{"too much of both", many("a", maxCompared/4+1), many("b", maxCompared/4+1), nil, 1, 200, "too long to show"},
		{"all that is compared", strings.Repeat("a", maxCompared), "", nil, 1, maxDiff + 200, "… (cut; read the file)"},
	} {
		edit := (&contentEdit{proposed: tt.proposed}).agreed(registry.Preview{FileName: "f", NewContent: tt.final})
		before := registry.Result{Content: tt.content}
		r := edit.addTo(before)
		if text := r.Text(); len(r.Content) != tt.parts || !strings.Contains(text, tt.want) || len(text) > tt.most {
			t.Errorf("%s: %d parts, %d bytes: %.300s", tt.name, len(r.Content), len(text), text)
		}
		if strings.Contains(before.Text(), "user") {
			t.Errorf("%s: the original result was modified", tt.name)
		}
	}
	if edit := (&contentEdit{proposed: "a"}).agreed(registry.Preview{NewContent: "a"}); edit != nil {
		t.Error("unchanged content is treated as an edit")
	}
}
