package shell

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
)

// While a folder is repeatedly swapped for a link to the outside, commands in it
// run inside the workspace or not at all, in the background too.
func TestSwappedDirectoryRunsNothingOutside(t *testing.T) {
	opts, dir := place(t, map[string]string{"folder/place": "inside"})
	opts.Env = []string{"PATH=" + os.Getenv("PATH")}
	outside := tooltest.Place(t, map[string]string{"place": "outside"})
	folder, link := filepath.Join(dir, "folder"), filepath.Join(dir, "link")
	tooltest.Link(t, outside, link)
	ctx, cancel := context.WithCancel(t.Context())
	var swapping sync.WaitGroup
	swapping.Go(func() {
		for ctx.Err() == nil {
			if err := unix.Renameat2(unix.AT_FDCWD, folder, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE); err != nil {
				t.Error(err)
				return
			}
		}
	})
	defer swapping.Wait()
	defer cancel()
	tool, process := find(t, opts, "run_shell_command"), find(t, opts, "process")
	id := regexp.MustCompile(`id "([^"]+)"`)
	inside := 0
	for i := 0; i < 300 || inside == 0 && i < 100_000; i++ { // 300 calls may end before the folder is swapped once
		params := `{"command":"cat place","directory":"folder"}`
		if i%20 == 0 {
			params = `{"command":"cat place","directory":"folder","background":true}`
		}
		r, err := tool.Run(t.Context(), tooltest.Call(params))
		text := r.Text()
		if m := id.FindStringSubmatch(text); m != nil {
			tooltest.Run(t, process, `{"action":"wait","id":"`+m[1]+`"}`)
			log := tooltest.Run(t, process, `{"action":"log","id":"`+m[1]+`"}`)
			text = log.Text()
		}
		if strings.Contains(text, "outside") {
			t.Fatalf("call %d ran outside the workspace:\n%s", i, text)
		}
		if err == nil && !r.IsError && strings.Contains(text, "inside") {
			inside++
		}
	}
	if inside == 0 {
		t.Error("no command ran inside the workspace")
	}
}

// An earlier command may have put a shell into a folder on PATH, such as a virtual
// environment.
func TestShellIsNotTakenFromTheWorkspace(t *testing.T) {
	opts, dir := place(t, nil)
	outside := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bash", "sh", "tool"} {
		if err := os.WriteFile(filepath.Join(dir, "bin", name), []byte("#!/bin/sh\necho planted\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(dir, "bin", name), filepath.Join(outside, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, folder := range []string{filepath.Join(dir, "bin"), outside} {
		opts.Env = []string{"PATH=" + folder + ":/usr/bin:/bin"}
		if r := run(t, opts, "run_shell_command", `{"command":"echo real; tool"}`); !strings.Contains(r.Text(), "real\nplanted") {
			t.Errorf("%s: %s", folder, r.Text())
		}
	}
}
