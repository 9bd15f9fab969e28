//go:build amd64 || arm64

package sandbox_test

import (
	"testing"

	"github.com/toolreg/toolreg/internal/sandbox"
)

func TestUsedNamesAreCollected(t *testing.T) {
	needFull(t)
	p := newPlace(t)
	writeFile(t, p.workspace+"/there", "")
	profile := p.profile()
	profile.Created = &sandbox.Names{}
	got := p.shell(t, profile, `
		set -e
		echo x >written; mkdir -p made/deep/; ln -s nowhere linked; ln written hard; mv written moved; mkfifo pipe; cp moved copied
		cat there made/../copied >/dev/null; ls; rm pipe
		python3 -c 'import os, threading; t = threading.Thread(target=lambda: os.mkdir("made/by-thread")); t.start(); t.join()'`)
	for name, want := range map[string]bool{
		"written": true, "made": true, "deep": true, "linked": true, "hard": true, "moved": true, "pipe": true, "copied": true, "by-thread": true,
		"there": false, "nowhere": false, "": false,
	} {
		if profile.Created.Has(name) != want {
			t.Errorf("%q: it should be %v\n%s", name, want, got)
		}
	}
}
