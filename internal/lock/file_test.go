package lock

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A file names the server of a tool only where its entries do not tell: one server has the
// tool, unless the name belongs to another.
func TestOwnersOfNames(t *testing.T) {
	file := func() *File {
		return &File{Tools: []Entry{
			{Source: "builtin", Name: "read_file"}, {Source: "mcp:github", Name: "create_issue"}, {Source: "mcp:github", Name: "list_repos"},
			{Source: "mcp:linear", Name: "create_issue"}, {Source: "mcp:linear", Name: "find"},
			{Source: "mcp:linear", Name: "find", Version: "2"},
		}}
	}
	for name, row := range map[string]struct{ owners, stored, want map[string]string }{
		"nobody decides": {want: map[string]string{"list_repos": "github", "find": "linear"}},
		"the entries tell": {
			owners: map[string]string{"list_repos": "github", "find": "linear"},
			want:   map[string]string{"list_repos": "github", "find": "linear"},
		},
		"two servers have a tool": {
			owners: map[string]string{"create_issue": "linear"}, stored: map[string]string{"create_issue": "linear"},
			want: map[string]string{"create_issue": "linear", "list_repos": "github", "find": "linear"},
		},
		"names belong to others": {
			owners: map[string]string{"create_issue": "github", "list_repos": "gone"},
			stored: map[string]string{"create_issue": "github", "list_repos": "gone"},
			want:   map[string]string{"create_issue": "github", "list_repos": "gone", "find": "linear"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := file()
			f.SetOwners(func(name string) string { return row.owners[name] })
			if diff := cmp.Diff(row.stored, f.Names); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(row.want, f.Owners()); diff != "" {
				t.Errorf("owners (-want +got):\n%s", diff)
			}
		})
	}
}
