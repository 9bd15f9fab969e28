//go:build linux

package shell

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// In the user's locale, part of a character may be a backslash byte that escapes a
// semicolon for either the analysis or the shell, but not for the other.
func TestCommandsRunInUTF8Locale(t *testing.T) {
	locales := t.TempDir()
	make := exec.Command("localedef", "--no-archive", "-c", "-i", "zh_CN", "-f", "GBK", filepath.Join(locales, "zh_CN.GBK"))
	if out, err := make.CombinedOutput(); err != nil {
		t.Skipf("%v: %s", err, out)
	}
	opts, dir := shellPlace(t, nil)
	opts.Env = append(opts.Env, "LOCPATH="+locales, "LANG=zh_CN.GBK", "LC_ALL=zh_CN.GBK")
	r := run(t, opts, "run_shell_command", `{"command":"echo 中\\;touch made"}`)
	if _, err := os.Stat(filepath.Join(dir, "made")); err == nil || !strings.Contains(r.Text(), "中;touch made") {
		t.Errorf("touch was run: %s", r.Text())
	}
}
