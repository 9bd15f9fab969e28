package settings

import (
	"runtime"
	"strings"
	"testing"
)

// Entries that were written for the command interpreter of Windows are told of, with what to write.
func TestEntriesForWindows(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Log("only the note about variables is given here")
		return
	}
	for entry, want := range map[string]string{
		`{command: cmd, args: [/c, npx, -y, foo]}`:                       `runs cmd /c, which only Windows has; write command: npx, args: ["-y","foo"]`,
		`{command: CMD.EXE, args: [/C, npx]}`:                            `runs cmd /c, which only Windows has; write command: npx, args: []`,
		`{command: npx.cmd, args: [-y, foo]}`:                            `runs npx.cmd, which is a name of Windows; write command: npx`,
		`{command: 'C:\Program Files\nodejs\node.exe', args: [x]}`:       `runs "C:\\Program Files\\nodejs\\node.exe", which is a path of Windows; write the path that the program has on this machine`,
		`{command: srv, env: {A: '%APPDATA%\npm'}}`:                      `has %APPDATA%, which is not expanded; write ${APPDATA}`,
		`{command: srv, args: [--key, '%MY_KEY%']}`:                      `has %MY_KEY%, which is not expanded; write ${MY_KEY}`,
		`{command: srv, args: ['--format=%h%x%n', '50%', '%20a%20']}`:    ``,
		`{command: cmd, args: [-c]}`:                                     ``,
		`{command: ./tools/x.exe}`:                                       ``,
		`{command: cmd, args: [/c, npx], disabled: true}`:                ``,
		`{url: 'https://x.example/%APPDATA%', headers: {A: '%MY_KEY%'}}`: ``,
	} {
		b := newSandbox(t)
		b.user("settings.yaml", "mcpServers: {s: "+entry+"}\n")
		var got []string
		_, diags, err := Load(b.options())
		if err != nil {
			t.Fatalf("%s: %v", entry, err)
		}
		for _, d := range diags {
			if d.Code == "windows_entry" {
				_, message, _ := strings.Cut(d.Message, ") ")
				got = append(got, message+"; "+d.Hint)
			}
		}
		if joined := strings.Join(got, "\n"); joined != want {
			t.Errorf("%s: %q, want %q", entry, joined, want)
		}
	}
}
