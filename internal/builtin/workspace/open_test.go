package workspace

import (
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
)

// Only files and folders are opened, also through a link that replaced one.
func TestOpenFileRefusesOtherKinds(t *testing.T) {
	opts, dir := place(t, map[string]string{"file": ""})
	tooltest.MakePipe(t, filepath.Join(dir, "pipe"))
	tooltest.Link(t, "pipe", filepath.Join(dir, "to-pipe"))
	listener, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	w := tooltest.Open(t, New(opts))
	for name, want := range map[string]error{"file": nil, ".": nil, "pipe": ErrKind, "to-pipe": ErrKind, "socket": ErrKind} {
		f, _, err := w.OpenFile(name)
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
		if err == nil {
			f.Close()
		}
	}
}

// A file is read whole or not at all.
func TestReadFileLimit(t *testing.T) {
	opts, _ := place(t, map[string]string{"file": "0123456789"})
	w := tooltest.Open(t, New(opts))
	if data, info, err := w.ReadFile("file", 10); string(data) != "0123456789" || err != nil || info.Size() != 10 {
		t.Errorf("at the limit: %q, %v", data, err)
	}
	if _, _, err := w.ReadFile("file", 9); err == nil || !strings.Contains(err.Error(), "is larger than") {
		t.Errorf("over the limit: %v", err)
	}
	if _, _, err := w.ReadFile(".", 9); !errors.Is(err, ErrIsDir) {
		t.Errorf("a folder: %v", err)
	}
}

func TestIsLogin(t *testing.T) {
	const hash = "0123456789abcdef0123456789abcdef"
	for path, want := range map[string]bool{
		"login-" + hash + ".json": true, "state/login-" + hash + ".json": true, "LOGIN-" + strings.ToUpper(hash) + ".JSON": true,
		"logon-" + hash + ".json": false, "login-" + hash + ".yaml": false, "login-" + hash[1:] + "g.json": false, "login-" + hash + "0.json": false, "login": false,
	} {
		if got := IsLogin(path); got != want {
			t.Errorf("IsLogin(%q) = %v", path, got)
		}
	}
}
