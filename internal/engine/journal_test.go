package engine

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/registry"
)

// The results that a journal holds in memory are bounded: of a call whose result is too large, one
// that may be repeated is made again, and any other one is not, but reports that.
func TestJournalWithLargeResults(t *testing.T) {
	large := registry.Result{Content: []registry.Content{registry.TextContent(strings.Repeat("x", maxJournal*3/5))}}
	made := map[string]int{}
	once := func(j *Journal, name string, again bool) registry.Result {
		t.Helper()
		result, err := j.Once(name, json.RawMessage(`{}`), func() (registry.Result, bool, error) {
			made[name]++
			return large, again, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	first := &Journal{}
	once(first, "kept", false)
	once(first, "read", true)
	if r := once(first, "write", false); r.IsError {
		t.Errorf("the call itself failed: %s", r.Text())
	}
	if first.size > maxJournal {
		t.Errorf("the journal holds %d bytes", first.size)
	}
	data, err := first.encode()
	if err != nil {
		t.Fatal(err)
	}
	var file journalFile
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	second := &Journal{earlier: map[string][]journalEntry{}}
	for _, e := range file.Calls {
		second.earlier[e.Key] = append(second.earlier[e.Key], e)
	}
	if r := once(second, "kept", false); r.Text() != large.Text() {
		t.Errorf("kept: %d bytes", len(r.Text()))
	}
	once(second, "read", true)
	if r := once(second, "write", false); !r.IsError || !strings.Contains(r.Text(), "too large to be kept") {
		t.Errorf("write: %.100s", r.Text())
	}
	if made["kept"] != 1 || made["read"] != 2 || made["write"] != 1 {
		t.Errorf("made %v", made)
	}
}
