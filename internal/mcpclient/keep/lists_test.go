package keep

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"
)

func TestListsAreKeptUntilTheyChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lists
		expect := func(what, key string, any bool, want string, current bool) {
			t.Helper()
			if got, now := l.get(key, any); string(got) != want || now != current {
				t.Errorf("%s: %q, current %v; want %q, %v", what, got, now, want, current)
			}
		}
		const tools, second, prompts = "tools/list ", `tools/list {"cursor":"2"}`, "prompts/list "
		l.put(tools, json.RawMessage(`{"tools":[]}`), l.changed())
		l.put(second, json.RawMessage(`{"tools":[2]}`), l.changed())
		l.put(prompts, json.RawMessage(`{"prompts":[],"ttlMs":1000}`), l.changed())
		time.Sleep(999 * time.Millisecond)
		expect("without a time limit", tools, false, `{"tools":[]}`, true)
		expect("within the time limit", prompts, false, `{"prompts":[],"ttlMs":1000}`, true)
		time.Sleep(2 * time.Millisecond)
		expect("after the time limit", prompts, true, "", false)

		l.put(tools, json.RawMessage(`{"tools":[1],"ttlMs":0}`), l.changed())
		expect("the second page of an earlier list", second, true, "", false)
		expect("never up to date, for a list", tools, false, "", false)
		expect("never up to date, for a call", tools, true, `{"tools":[1],"ttlMs":0}`, false)

		asked := l.changed()
		l.forget("tools/")
		l.put(tools, json.RawMessage(`{"tools":["old"]}`), asked)
		expect("asked for before the change", tools, true, "", false)
	})
}

func TestNamesOfSockets(t *testing.T) {
	f := &Folder{key: []byte("k")}
	o := Origin{Root: "/p", File: "/f", Server: "s", Entry: "{}"}
	name := f.Name(o, "process")
	if len(name) != nameLength {
		t.Errorf("%d characters", len(name))
	}
	other := o
	other.Entry = `{"a":1}`
	moved := o
	moved.Root = "/q"
	tests := []struct {
		what             string
		name             string
		server, outdated bool
	}{
		{"the same", name, true, false},
		{"another process", f.Name(o, "other"), true, false},
		{"another entry", f.Name(other, "process"), true, true},
		{"another project", f.Name(moved, "process"), false, false},
		{"another user's key", (&Folder{key: []byte("l")}).Name(o, "process"), false, false},
	}
	written := map[string]map[string]string{"/f": {"s": "{}"}, "/g": {}}
	for _, tt := range tests {
		if got := f.isOf(tt.name, o); got != tt.server {
			t.Errorf("%s: of the server: %v", tt.what, got)
		}
		if got := f.isOutdated(tt.name, "/p", written); got != tt.outdated {
			t.Errorf("%s: outdated: %v", tt.what, got)
		}
	}
	if !f.isOutdated(name, "/p", map[string]map[string]string{"/f": {}}) {
		t.Error("an entry that is gone is not outdated")
	}
}
