//go:build amd64 || arm64

package shell

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/toolreg/toolreg/internal/process"
)

// A caller gets the loopback interface of its own commands in its own workspace alone, that of the
// oldest which is running.
func TestLoopbackOfScope(t *testing.T) {
	dir := t.TempDir()
	store := &backgroundStore{dir}
	self := os.Getpid()
	birth, ok := birthOf(self)
	if !ok {
		t.Fatal("the birth of this process is unknown")
	}
	for i, r := range []backgroundRecord{
		{ID: "gone", Workspace: "/w"}, {ID: "client", Workspace: "/w", Token: "ann"}, {ID: "first", Workspace: "/w"}, {ID: "second", Workspace: "/w"},
		{ID: "elsewhere", Workspace: "/other"},
	} {
		r.PID, r.Group, r.Birth, r.Started = self, self, birth, time.Unix(int64(i), 0).Add(time.Since(time.Unix(10, 0)))
		if err := store.save(&r); err != nil {
			t.Fatal(err)
		}
		content := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(content, []byte(r.ID), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(content)
		if err != nil {
			t.Fatal(err)
		}
		end, err := shareNetwork(store.path(r.ID, "net"), f)
		if err != nil {
			t.Fatal(err)
		}
		if r.ID == "gone" {
			end()
		} else {
			defer end()
		}
	}
	for _, c := range []struct {
		of   scope
		want string
	}{
		{scope{workspace: "/w", person: true}, "first"},
		{scope{workspace: "/w", token: "ann"}, "client"},
		{scope{workspace: "/w", token: "bob"}, ""},
		{scope{workspace: "/other"}, "elsewhere"},
		{scope{workspace: "/elsewhere"}, ""},
	} {
		got := ""
		if f, socket := store.loopback(c.of); f != nil {
			data, err := io.ReadAll(f)
			if got = string(data); err != nil || socket != store.path(got, "net") {
				t.Errorf("%+v: %v, %s", c.of, err, socket)
			}
			f.Close()
		}
		if got != c.want {
			t.Errorf("%+v: got %q, want %q", c.of, got, c.want)
		}
	}
	var none *process.Confinement
	if none.HasLoopback() {
		t.Error("an unconfined command has a loopback interface")
	}
}
