//go:build linux

package house_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestServiceFiles checks the files of examples/serve with the programs that read them.
func TestServiceFiles(t *testing.T) {
	t.Chdir(root)
	dir := t.TempDir()
	for _, name := range []string{"haproxy.cfg", "nginx.conf", "toolreg.service", "toolreg.socket"} {
		text, err := os.ReadFile(filepath.Join("examples", "serve", name))
		if err != nil {
			t.Fatal(err)
		}
		// These programs need not be installed.
		text = bytes.ReplaceAll(text, []byte("/usr/bin/toolreg"), []byte("/bin/true"))
		text = bytes.ReplaceAll(text, []byte("Documentation=man:toolreg-serve(1)\n"), nil)
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	whole := fmt.Sprintf("events {}\npid %s/pid;\nerror_log stderr;\nhttp { access_log off; include %[1]s/nginx.conf; }\n", dir)
	if err := os.WriteFile(filepath.Join(dir, "whole.conf"), []byte(whole), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{
		{"haproxy", "-c", "-f", "haproxy.cfg"},
		{"nginx", "-t", "-q", "-c", filepath.Join(dir, "whole.conf")},
		{"systemd-analyze", "verify", "./toolreg.service", "./toolreg.socket"},
	} {
		t.Run(command[0], func(t *testing.T) {
			if _, err := exec.LookPath(command[0]); err != nil {
				t.Skip(err)
			}
			check := exec.CommandContext(t.Context(), command[0], command[1:]...)
			check.Dir = dir
			if out, err := check.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
