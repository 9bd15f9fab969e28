package sandbox

import (
	"os"
	"path/filepath"
	"testing"
)

func TestCredentials(t *testing.T) {
	base := t.TempDir()
	real, home := filepath.Join(base, "data", "u"), filepath.Join(base, "home")
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(real, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("work/a.txt", "hello")
	write("work/rsa", "-----BEGIN RSA PRIVATE KEY-----\nx")
	write("work/pkcs8", "\n-----BEGIN ENCRYPTED PRIVATE KEY-----\nx")
	write("work/putty", "PuTTY-User-Key-File-3: ssh-ed25519\n")
	write("work/age", "# created: 2026-01-01T00:00:00Z\n# public key: age1qqq\nAGE-SECRET-KEY-1\n")
	write("work/cert", "-----BEGIN CERTIFICATE-----\nx\n-----BEGIN PRIVATE KEY-----\n")
	write("work/public", "-----BEGIN PUBLIC KEY-----\nx")
	write("dotfiles/ssh/id", "x")
	write(".cache/toolreg/outputs/a", "x")
	if err := os.Symlink(real, home); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("dotfiles/ssh", filepath.Join(real, ".ssh")); err != nil {
		t.Fatal(err)
	}
	const key, kept = "begins as a private key", "is where credentials are kept"
	tests := []struct{ workspace, path, want string }{
		{home, ".ssh/id", kept},
		{home, ".ssh", kept},
		{home, ".SSH/id", kept},
		{home, "dotfiles/ssh/id", kept},
		{real, ".pgpass", kept}, // does not exist, and is in the home by its link
		{real, ".docker/config.json", kept},
		{real, "conf/gh/hosts.yml", kept},
		{home, ".sshx", ""},
		{home, "work/a.txt", ""},
		{home, "work/rsa", key},
		{base, "work/pkcs8", key},
		{home, "work/putty", key},
		{home, "work/age", key},
		{home, "work/cert", ""},
		{home, "work/public", ""},
		{home, "work", ""},
		{home, ".cache/toolreg/outputs/a", ""},
		{home, ".cache/toolreg/x", kept},
		{filepath.Join(home, ".ssh"), ".ssh/id", kept},
		{"/", ".netrc", kept},
	}
	environ := []string{"XDG_CONFIG_HOME=" + filepath.Join(home, "conf")}
	for _, tt := range tests {
		c := NewCredentials(tt.workspace, home, environ)
		if c == nil {
			t.Fatalf("%s has no credentials", tt.workspace)
		}
		c.Open(filepath.Join(home, ".cache/toolreg/outputs"))
		got := c.Why(filepath.Join(home, tt.path))
		if got == "" { // callers ask about both
			got = c.Why(filepath.Join(real, tt.path))
		}
		if got != tt.want {
			t.Errorf("%s in %s: %q, want %q", tt.path, tt.workspace, got, tt.want)
		}
	}
	if got := NewCredentials(real, home, environ).Why(filepath.Join(real, ".pgpass")); got != kept {
		t.Errorf("what does not exist, without the link to the home: %q", got)
	}
	if c := NewCredentials(filepath.Join(home, "work"), home, environ); c != nil {
		t.Errorf("a project has %v", c.places)
	}
	for _, path := range []string{"/etc/shadow", "/etc/ssh/ssh_host_ed25519_key", "/proc/self/environ"} {
		if c := NewCredentials("/", "", nil); c.Why(path) != kept {
			t.Errorf("%s is not guarded", path)
		}
	}
	if c := NewCredentials("/etc", "", nil); c.Why("/etc/passwd") != "" {
		t.Error("/etc/passwd is guarded")
	}
}
