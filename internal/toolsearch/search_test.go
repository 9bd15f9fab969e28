package toolsearch

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/registry"
)

func words(text string) (out []string) {
	eachWord(text, func(w string) { out = append(out, folded(w)) })
	return out
}

func TestWords(t *testing.T) {
	for text, want := range map[string][]string{
		"":                            nil,
		"read_file":                   {"read", "file"},
		"readFile-now.please":         {"read", "file", "now", "please"},
		"HTMLPage getURL v2 s3Bucket": {"html", "page", "get", "url", "v2", "s3", "bucket"},
		"X XY xY ABc É":               {"x", "xy", "x", "y", "a", "bc", "e"},
		"ค้นหาไฟล์":                   strings.Split("ค้นหาไฟล์", ""),
		"👩‍👩‍👧 emoji👍done":            {"emoji", "done"},
		"Ärger über naïve Größe ＡＰＩ й":  {"arger", "uber", "naive", "grosse", "api", "и"},
		"e\u0301tage がぎ か\u3099":        {"etage", "が", "ぎ", "が"},
		"\u0301 x":                      {"\u0301", "x"},
		"파일을 검색":                        {"파", "일", "을", "검", "색"},
		"读取文件 read ファイル":                {"读", "取", "文", "件", "read", "フ", "ァ", "イ", "ル"},
		"\xff broken\xffbytes":          {"broken", "bytes"},
		strings.Repeat("é", 100) + " x": {strings.Repeat("e", 32), "x"},
	} {
		if diff := cmp.Diff(want, words(text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func FuzzWords(f *testing.F) {
	f.Add("readFile HTMLPage 读 \xff")
	f.Fuzz(func(t *testing.T, text string) {
		for _, w := range words(text) {
			if w == "" || len(w) > 3*maxWord || !utf8.ValidString(w) || strings.ContainsAny(w, " _-") {
				t.Errorf("%q in %q", w, text)
			}
		}
		New([]Document{{Name: text, Description: text}}).Rank(text, 10)
	})
}

var registered = []Document{
	{Name: "read_file", Description: "Reads a file in the workspace."},
	{Name: "create_issue", Description: "Opens an issue in a repository.", Server: "github", Params: []Param{{"title", "Title of the issue"}, {"repo", "The repository"}}},
	{Name: "list_issues", Description: "Lists issues.", Server: "github"},
	{Name: "send_message", Description: "Posts a message to a channel.", Server: "slack", ServerDescription: "The company's chat", Tags: []string{"chat"}},
	{Name: "查找文件", Description: "在工作区里查找文件"},
}

func names(hits []Hit) (out []string) {
	for _, h := range hits {
		out = append(out, registered[h.Document].Name)
	}
	return out
}

func TestRank(t *testing.T) {
	x := New(registered)
	for query, want := range map[string][]string{
		"creating issues":                 {"create_issue", "list_issues"},
		"how do I read the files, please": {"read_file"},
		"slack":                           {"send_message"},
		"chat":                            {"send_message"},
		"repositories":                    {"create_issue"},
		"文件":                              {"查找文件"},
		"the":                             {"read_file"},                   // only a stop word, so it is searched for
		"open a ticket on github":         {"create_issue", "list_issues"}, // synonyms, and the server's name
		"delte mesage":                    {"send_message"},
		"mesaeg":                          nil, // two errors
		"😀":                               nil,
		"😀 slack, 文件":                     {"查找文件", "send_message"},
		"nowhere":                         nil,
		"":                                nil,
		strings.Repeat("issue ", 2000):    {"list_issues", "create_issue"},
	} {
		hits, matched := x.Rank(query, 10)
		got := names(hits)
		if query == "the" {
			got = got[:1]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%.40q (-want +got):\n%s", query, diff)
		}
		if matched != len(hits) {
			t.Errorf("%.40q: %d of %d", query, len(hits), matched)
		}
	}
	if hits, matched := x.Rank("issue", 1); len(hits) != 1 || matched != 2 {
		t.Errorf("limit 1: %v of %d", hits, matched)
	}
	if hits, matched := New(nil).Rank("x", 10); hits != nil || matched != 0 {
		t.Errorf("empty index: %v of %d", hits, matched)
	}
}

// People remember and forget, where a knowledge graph adds and deletes.
func TestToolsOfMemory(t *testing.T) {
	l := &listed{}
	l.add(t, filepath.FromSlash("../../testdata/servers/memory.json"))
	x := New(l.documents())
	for query, want := range map[string]string{
		"remember facts about a person": "memory/add_observations",
		"forget a fact about Anna":      "memory/delete_observations",
	} {
		hits, _ := x.Rank(query, 1)
		if len(hits) == 0 || l.names[hits[0].Document] != want {
			t.Errorf("%q: %v, want %s", query, hits, want)
		}
	}
}

// Words of an identifier are found whether they are written as one word or separately.
func TestRankJoinedWords(t *testing.T) {
	documents := []Document{
		{Name: "read_file", Description: "Returns text."},
		{Name: "listissues", Server: "githost"},
		{Name: "sha256_sum"},
		{Name: "getURLFor2FACode"},
		{Name: "todo_write"},
		{Name: "notes", Description: "Reads notes, not a file system."},
		{Name: "datei_lesen"},
	}
	for query, want := range map[string][]string{
		"readfile":     {"read_file", "notes"},
		"ReadFiles":    {"read_file", "notes", "getURLFor2FACode"}, // get means the same
		"readingfiles": {"read_file", "notes"},
		"list issues":  {"listissues"},
		"list issue":   {"listissues"},
		"git host":     {"listissues"},
		"sha 256":      {"sha256_sum"},
		"sha256sum":    {"sha256_sum"},
		"fetchurl":     {"getURLFor2FACode"},
		"geturl":       {"getURLFor2FACode"},
		"2 FA code":    {"getURLFor2FACode"},
		"to-do":        {"todo_write"},
		"dateilesen":   {"datei_lesen"},
		"readnothing":  nil,
		"savecode":     nil, // each part is known, but no document has both
	} {
		hits, _ := New(documents).Rank(query, 10)
		var got []string
		for _, h := range hits {
			got = append(got, documents[h.Document].Name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", query, diff)
		}
	}
}

// A query that is a name finds that tool first, and a deprecated tool comes last.
func TestRankByName(t *testing.T) {
	documents := []Document{
		{Name: "commit_comm_it", Description: "commit, comm it, git commit"},
		{Name: "old_commit", Names: []string{"old_commit"}, Description: "Commits to git: git commit of git. Commit.", Deprecated: true},
		{Name: "commit", Names: []string{"commit", "git__commit"}, Server: "git", Description: "Records changes."},
		{Name: "git_comm", Description: "comm it"},
		{Name: "the", Names: []string{"the"}, Description: "An article."},
	}
	for query, want := range map[string][]string{
		"git__commit": {"commit"},
		"Git__Commit": {"commit"},
		" commit ":    {"commit", "commit_comm_it", "git_comm", "old_commit"},
		"old_commit":  {"old_commit"},
		"the":         {"the"},
		"record":      {"commit"},
	} {
		hits, _ := New(documents).Rank(query, 10)
		for i, name := range want {
			if i >= len(hits) || documents[hits[i].Document].Name != name {
				t.Errorf("%q: %v, want %q first", query, hits, want)
				break
			}
		}
	}
	// comit is com and it, which one tool has by chance; commit is a letter away.
	documents = []Document{{Name: "notes", Description: "Opens the com port; it waits."}, {Name: "record", Description: "Makes a git commit."}}
	hits, _ := New(documents).Rank("git comit", 10)
	if len(hits) != 2 || documents[hits[0].Document].Name != "record" {
		t.Errorf("git comit: %v", hits)
	}
}

func TestDeprecatedTools(t *testing.T) {
	for _, tt := range []struct {
		definition registry.Definition
		want       bool
	}{
		{registry.Definition{Tags: []string{"Deprecated"}}, true},
		{registry.Definition{Annotations: json.RawMessage(`{"deprecated":true}`)}, true},
		{registry.Definition{Description: "[DEPRECATED] Use other."}, true},
		{registry.Definition{Description: "Deprecated: use other."}, true},
		{registry.Definition{Description: "Lists deprecated files.", Annotations: json.RawMessage(`{"deprecated":false}`), Tags: []string{"old"}}, false},
		{registry.Definition{}, false},
	} {
		if got := Of(&tt.definition, "").Deprecated; got != tt.want {
			t.Errorf("%+v: %t", tt.definition, got)
		}
	}
	of := Of(&registry.Definition{Name: "s__t", Source: "mcp:s", Server: "s", ServerTool: "t", Aliases: []string{"u"}}, "")
	if diff := cmp.Diff([]string{"s__t", "u", "s__t"}, of.Names); diff != "" {
		t.Error(diff)
	}
}

// The words of a server's name find all its tools and rank them equally.
func TestRankByServer(t *testing.T) {
	documents := []Document{
		{Name: "linear_list_teams", Description: "Linear: lists the teams of Linear.", Server: "linear"},
		{Name: "create_issue", Description: "Creates an issue.", Server: "linear"},
		{Name: "create_issue", Description: "Creates an issue. Linear time.", Server: "github"},
		{Name: "b", Server: "my-server"},
		{Name: "a", Server: "my-server"},
	}
	for query, want := range map[string][]int{
		"linear":              {1, 0, 2}, // equal: by name
		"linera":              {1, 0, 2},
		"linear create issue": {1, 2, 0},
		"my server":           {4, 3},
	} {
		hits, _ := New(documents).Rank(query, 10)
		var got []int
		for _, h := range hits {
			got = append(got, h.Document)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", query, diff)
		}
	}
}

func TestOneTypo(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"branch", "brach", true}, {"brach", "branch", true}, {"issue", "isseu", true}, {"issue", "issua", true}, {"issue", "xssue", false},
		{"issue", "issues", true}, {"issue", "sisue", false}, {"issue", "iusse", false}, {"issue", "isu", false}, {"issue", "other", false},
	} {
		if got := oneTypo(c.a, c.b); got != c.want {
			t.Errorf("%s, %s: %v", c.a, c.b, got)
		}
	}
}

// The order of hits, including ties, does not depend on the order of the tools.
func TestRankIsDeterministic(t *testing.T) {
	documents := corpus(300)
	rank := func() (names []string) {
		hits, _ := New(documents).Rank("search the rceords of projects", len(documents))
		for _, h := range hits {
			names = append(names, fmt.Sprint(documents[h.Document].Name, " ", h.Score))
		}
		return names
	}
	want := rank()
	if len(want) < 100 || slices.IsSorted(want) {
		t.Fatalf("%d hits, in order of names: %v", len(want), slices.IsSorted(want))
	}
	slices.Reverse(documents)
	if diff := cmp.Diff(want, rank()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParamsAtAnyDepth(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"a":{"description":"first"},"b":{"type":"array","items":{"properties":{"c":{"description":"deep"}}}},"d":{"anyOf":[{"properties":{"e":{}}}]}}}`)
	d := Of(&registry.Definition{Name: "x", InputSchema: schema}, "")
	if diff := cmp.Diff([]Param{{"a", "first"}, {"b", ""}, {"c", "deep"}, {"d", ""}, {"e", ""}}, d.Params); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	referred := json.RawMessage(`{"$ref":"#/$defs/a","$defs":{"a":{"properties":{"f":{"$ref":"#/$defs/b"}}},"b":{"properties":{"g":{}}}},"then":{"properties":{"h":{}}}}`)
	if diff := cmp.Diff([]Param{{"f", ""}, {"g", ""}, {"h", ""}}, Of(&registry.Definition{InputSchema: referred}, "").Params); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	deep := strings.Repeat(`{"properties":{"p":`, 5000) + "{}" + strings.Repeat("}}", 5000)
	if n := len(Of(&registry.Definition{InputSchema: json.RawMessage(deep)}, "").Params); n != maxDepth {
		t.Errorf("%d params of a deeply nested schema", n)
	}
}

// corpus makes documents of about 700 bytes, as tools are.
func corpus(n int) []Document {
	verbs := []string{"create", "list", "search", "update", "delete", "get", "export", "import", "archive", "count"}
	nouns := []string{"issue", "record", "project", "message", "file", "invoice", "customer", "deployment", "branch", "event", "page", "query"}
	out := make([]Document, n)
	for i := range out {
		verb, noun, other := verbs[i%len(verbs)], nouns[i/7%len(nouns)], nouns[(i*5+3)%len(nouns)]
		out[i] = Document{
			Name:        fmt.Sprintf("%s_%s_%d", verb, noun, i),
			Description: fmt.Sprintf("%ss the %s of a %s. %s", verb, noun, other, strings.Repeat("Returns its fields with the identifier and the time of the last change. ", 4)),
			Server:      fmt.Sprint("server", i%50),
			Params:      []Param{{noun + "_id", "Identifier of the " + noun}, {"limit", "How many at most"}, {"fields", "Which fields to return"}},
		}
	}
	return out
}
