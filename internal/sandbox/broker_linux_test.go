//go:build amd64 || arm64

package sandbox_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toolreg/toolreg/internal/sandbox"
)

// brokered returns a profile in which the folder "own" of the workspace is brokered. In it the name
// "kept" is refused everywhere, "gone" can only be removed, and "still" is not moved.
func (p place) brokered(t *testing.T) (sandbox.Profile, string) {
	t.Helper()
	folder, err := filepath.EvalSymlinks(p.workspace)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"own/kept": "kept\n", "own/gone": "gone\n", "own/index": "old\n", "own/open/x": "x\n", "own/other": "kept too\n", "own/still": "still\n", "own/around/other": "kept too\n", "guard": "guard\n", "tree/guard": "guard\n", "tree/x": "x\n"} {
		writeFile(t, folder+"/"+name, text)
	}
	profile := p.profile()
	profile.Created = &sandbox.Names{}
	profile.ReadOnly = []string{folder + "/guard", folder + "/own/other", folder + "/own/around/other", folder + "/tree/guard"}
	profile.Removable = []string{folder + "/tree"}
	profile.Brokered = []sandbox.Brokered{{Path: folder + "/own", Open: []string{"open"}, Refuses: func(rel string, change sandbox.Change, made func(string) bool) bool {
		name := filepath.Base(rel)
		return !made(filepath.Dir(rel)) && (name == "kept" || name == "gone" && change != sandbox.Removes || name == "still" && change == sandbox.Moves)
	}}}
	return profile, folder
}

// In a brokered folder a program makes the usual changes, but not those that are refused.
func TestBrokeredFolder(t *testing.T) {
	needFull(t)
	p := newPlace(t)
	profile, folder := p.brokered(t)
	got := p.shell(t, profile, `
		set -e; umask 027; cd own
		echo new >index.lock; mv index.lock index; echo more >>index; cat index
		mkdir -p deep/er; echo x >deep/er/kept; ln deep/er/kept hard; rm hard; ln -s index link; echo through >>link; rm link
		echo y >open/y; mv open/y open/z; chmod 600 index; mkdir empty; rmdir empty; rm gone
		echo more >>still; echo over >new; mv new still; echo long >created
		python3 - <<-'END'
			import ctypes, os, errno
			def fails(name, change, *codes):
			    try: change(); print("DONE", name)
			    except OSError as e:
			        if e.errno not in codes: print("WRONG", name, e)
			libc = ctypes.CDLL(None, use_errno=True)
			def exchange(a, b):
			    if libc.renameat2(-100, a, -100, b, 2): raise OSError(ctypes.get_errno(), "exchange")
			for path in ("kept", "../own/kept", "deep/../kept", os.path.abspath("kept"), "gone", "other"):
			    fails("write " + path, lambda: open(path, "a"), errno.EROFS)
			os.symlink("own/kept", "../led"); fails("write by a link", lambda: open("../led", "a"), errno.EROFS)
			os.symlink("own/index", "../well"); os.close(os.open("../well", os.O_WRONLY)); os.chmod("../well", 0o600)
			os.symlink("own/none", "../nowhere"); fails("create through a link", lambda: os.open("../nowhere", os.O_CREAT | os.O_EXCL | os.O_WRONLY), errno.EEXIST)
			os.symlink("own", "../way"); fails("write through a link", lambda: open("../way/kept", "a"), errno.EROFS)
			file = os.open("kept", os.O_RDONLY); fails("write by a descriptor", lambda: open(f"/proc/self/fd/{file}", "a"), errno.EROFS)
			fails("remove", lambda: os.unlink("kept"), errno.EROFS)
			fails("move away", lambda: os.rename("kept", "x"), errno.EROFS)
			fails("move over", lambda: os.rename("index", "kept"), errno.EROFS)
			fails("link", lambda: os.link("kept", "x"), errno.EROFS)
			fails("link over", lambda: os.link("index", "gone"), errno.EROFS)
			fails("change the mode", lambda: os.chmod("kept", 0o777), errno.EROFS)
			fails("truncate", lambda: os.truncate("kept", 0), errno.EROFS)
			fails("move what it writes itself", lambda: os.rename("open", "x"), errno.EROFS, errno.EBUSY)
			fails("move a protected file", lambda: os.rename("other", "x"), errno.EROFS)
			fails("move what is around one", lambda: os.rename("around", "x"), errno.EROFS)
			fails("move away what is not moved", lambda: os.rename("still", "x"), errno.EROFS)
			fails("exchange", lambda: exchange(b"still", b"index"), errno.EROFS)
			fails("exchange with", lambda: exchange(b"index", b"still"), errno.EROFS)
			exchange(b"created", b"index"); exchange(b"created", b"index")
			print(os.fstatvfs(os.open("index", os.O_PATH | os.O_RDWR)).f_flag & os.ST_RDONLY)
			os.close(os.open("../guard", os.O_RDONLY | os.O_CREAT)) # which changes nothing
			fd = libc.creat(b"created", 0o600); os.write(fd, b"short")
			fails("move the folder", lambda: os.rename("../own", "../x"), errno.EBUSY)
			fails("create what exists", lambda: os.mkdir("index"), errno.EEXIST)
			fails("open what does not exist", lambda: os.open("none", os.O_RDWR), errno.ENOENT)
			fails("remove a folder with files", lambda: os.rmdir("deep"), errno.ENOTEMPTY)
			fails("move out", lambda: os.rename("index", "../index"), errno.EXDEV)
			fd = os.open("flags.lock", os.O_CREAT | os.O_EXCL | os.O_RDWR); os.set_inheritable(fd, True); os.write(fd, b"by descriptor"); print(os.get_blocking(fd))
		END
		ls ../tree; rm -r ../tree; [ -e ../tree ] || echo gone; mkdir ../tree; echo mine >../tree/guard; echo end`)
	if got != "new\nmore\n1\nTrue\nguard\nx\ngone\nend\n" {
		t.Errorf("the program printed:\n%s", got)
	}
	for name, want := range map[string]string{"own/kept": "kept\n", "own/other": "kept too\n", "own/index": "new\nmore\nthrough\n", "own/deep/er/kept": "x\n", "own/open/z": "y\n", "own/created": "short", "own/still": "over\n", "tree/guard": "mine\n", "own/flags.lock": "by descriptor", "own/gone": "", "tree/x": ""} {
		if data, err := os.ReadFile(folder + "/" + name); string(data) != want || (err != nil) != (want == "") {
			t.Errorf("%s has %q, %v", name, data, err)
		}
	}
	for name, want := range map[string]fs.FileMode{"own/index": 0o600, "own/deep": 0o750 | fs.ModeDir, "own/deep/er/kept": 0o640} {
		if info, err := os.Stat(folder + "/" + name); err != nil || info.Mode() != want {
			t.Errorf("%s has mode %v, %v", name, info.Mode(), err)
		}
	}
}

// A file of Rewritten is replaced by way of its lock, if what the program wrote is accepted, and in no other way.
func TestRewrittenFiles(t *testing.T) {
	needFull(t)
	p := newPlace(t)
	folder, err := filepath.EvalSymlinks(p.workspace)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, folder+"/own/config", "old\n")
	writeFile(t, folder+"/own/large", strings.Repeat("x", 1<<20+1))
	writeFile(t, folder+"/own/full", strings.Repeat("x", 1<<20))
	if err := errors.Join(os.Symlink("config", folder+"/own/linked"), syscall.Mkfifo(folder+"/own/pipe", 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(folder+"/own/config", 0o640); err != nil {
		t.Fatal(err)
	}
	profile := p.profile()
	profile.Created = &sandbox.Names{}
	profile.Brokered = []sandbox.Brokered{{Path: folder + "/own", Rewritten: []string{"config", "large", "full", "linked", "folder", "pipe", "none"},
		Refuses: func(rel string, _ sandbox.Change, _ func(string) bool) bool {
			name := strings.TrimSuffix(rel, ".lock")
			return name == "config" || name == "large" || name == "linked"
		},
		Accepts: func(file, before, after string) bool {
			return strings.HasSuffix(after, "ok\n") && (file != "config" || before != "" && !strings.Contains(before, "last"))
		}}}
	got := p.shell(t, profile, `
		cd own; mkdir folder
		python3 - <<-'END'
			import os, errno
			def fails(name, change, *codes):
			    try: change(); print("DONE", name)
			    except OSError as e:
			        if e.errno not in codes: print("WRONG", name, e)
			def write(text, file="config"):
			    fd = os.open(file + ".lock", os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
			    os.write(fd, text.encode()); return fd
			def replace(file="config"): os.rename(file + ".lock", file)
			fails("write", lambda: open("config", "w"), errno.EROFS)
			fails("lock without O_EXCL", lambda: os.open("config.lock", os.O_CREAT | os.O_RDWR), errno.EROFS)
			fails("remove no lock", lambda: os.unlink("config.lock"), errno.ENOENT, errno.EROFS)
			os.close(write("new ok\n")); os.chmod("config.lock", 0o777)
			fails("lock twice", lambda: write(""), errno.EEXIST)
			fails("move the lock", lambda: os.rename("config.lock", "elsewhere"), errno.EROFS)
			fails("link the lock", lambda: os.link("config.lock", "elsewhere"), errno.EROFS)
			replace(); print(open("config").read(), end="")
			fd = write("bad\n"); fails("bad", replace, errno.EROFS)
			os.ftruncate(fd, 0); os.pwrite(fd, b"later ok\n", 0); replace(); os.pwrite(fd, b"worse ok\n", 0); print(open("config").read(), end="")
			write("gone ok\n"); os.unlink("config.lock"); print(os.path.exists("config.lock"), open("config").read(), end="")
			for file, codes in {"large": (errno.EROFS,), "linked": (errno.ELOOP,), "folder": (errno.EROFS,), "pipe": (errno.EROFS,), "none": (errno.ENOENT,)}.items():
			    write("ok\n", file); fails(file, lambda: replace(file), *codes); os.unlink(file + ".lock")
			write("ok\n", "full"); replace("full"); print(os.stat("full").st_size)
			write("x" * (1 << 20) + "ok\n"); fails("too large", replace, errno.EROFS); os.unlink("config.lock")
			write("x" * ((1 << 20) - 8) + "last ok\n"); replace(); print(os.stat("config").st_size, oct(os.stat("config").st_mode))
			write("next ok\n"); fails("because of the old one", replace, errno.EROFS)
		END
		echo end`)
	if want := "new ok\nlater ok\nFalse later ok\n3\n1048576 0o100640\nend\n"; got != want {
		t.Errorf("the program printed:\n%s", got)
	}
}

// toolreg as root changes only what belongs to root, as the program could without the sandbox's limits.
func TestFilesOfOthersAreNotChanged(t *testing.T) {
	needFull(t)
	if os.Getuid() != 0 {
		t.Skip("only root can give files to others")
	}
	p := newPlace(t)
	profile, folder := p.brokered(t)
	writeFile(t, folder+"/own/theirs/x", "x\n")
	for _, name := range []string{"own/index", "own/theirs", "tree/x"} {
		if err := os.Chown(folder+"/"+name, 1234, 1234); err != nil {
			t.Skip(err)
		}
	}
	got := p.shell(t, profile, `for change in "cp own/kept own/index" "rm own/index" "rm own/theirs/x" "mkdir own/theirs/y" "rm tree/x"; do $change 2>/dev/null && echo "$change"; done; rm tree/guard; mkdir own/mine`)
	if got != "" {
		t.Errorf("the program printed:\n%s", got)
	}
}

// What another program puts in the place of a protected file, or of the whole folder, while the
// program runs is protected as well.
func TestReplacedFilesStayProtected(t *testing.T) {
	needFull(t)
	for _, c := range []struct{ name, replace, attack string }{
		{"a file in a brokered folder", "echo hers >own/new; mv own/new own/kept", "echo bad >>own/kept"},
		{"a file being written", "echo hers >own/new; mv own/new own/kept", "echo bad >own/bad; mv own/bad own/kept; ln own/kept own/l; echo bad >>own/l; rm -f own/kept"},
		{"a protected file", "echo hers >new; mv new guard", "echo bad >>guard; echo bad >b; mv b guard; ln -sf nowhere guard; ln -s guard l; echo bad >>l; chmod 600 l; rm -f guard"},
		{"a protected file that is a link", "rm guard; ln -s own guard", "rm tree/x; rm -f guard"},
		{"a removed file", "rm guard", "echo bad >guard; mkdir guard; ln -s own guard; mv own/index guard"},
		{"the brokered folder", "mv own older; mkdir own; echo hers >own/kept", "echo bad >>own/kept; echo bad >own/index; rm -f own/kept; mkdir own/x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlace(t)
			profile, folder := p.brokered(t)
			// The other program is the shell itself, outside of the sandbox.
			done := make(chan string)
			go func() {
				done <- p.shell(t, profile, "touch ready; until [ -e go ]; do sleep 0.01; done; "+c.attack+"; rm ready go")
			}()
			before := hers(t, folder, c.replace)
			<-done
			if after := content(t, folder); after != before {
				t.Errorf("before:\n%s\nafter:\n%s", before, after)
			}
		})
	}
}

// hers makes changes as another program as soon as the sandboxed one runs, and returns the content
// of what is protected after them.
func hers(t *testing.T, folder, script string) string {
	t.Helper()
	outside := newPlace(t)
	outside.workspace = folder
	profile := outside.profile()
	out := outside.shell(t, profile, "until [ -e ready ]; do sleep 0.01; done; "+script)
	if strings.Contains(out, "rror") {
		t.Error(out)
	}
	before := content(t, folder)
	writeFile(t, folder+"/go", "")
	return before
}

func content(t *testing.T, folder string) string {
	t.Helper()
	var b strings.Builder
	for _, name := range []string{"own/kept", "own/index", "guard"} {
		info, err := os.Lstat(folder + "/" + name)
		if err != nil {
			fmt.Fprintf(&b, "%s: absent\n", name)
			continue
		}
		data, _ := os.ReadFile(folder + "/" + name)
		fmt.Fprintf(&b, "%s: %v %.99q\n", name, info.Mode(), data)
	}
	return b.String()
}
