package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// escapeMachine is what surrounds the programs that try to escape: listeners,
// shared memory, keys.
type escapeMachine struct {
	dir       string // holds everything, and is not below a folder for temporary files
	workspace string // a repository with settings, to be copied
	toolreg   string
	variables map[string]string
	missing   map[string]string // why a need (a word after "needs:") is not available here
}

// newEscapeMachine sets everything up until the test ends.
func newEscapeMachine(t *testing.T) *escapeMachine {
	t.Helper()
	toolreg, err := exec.LookPath("toolreg")
	if err != nil {
		t.Fatal(err)
	}
	base, err := filepath.Abs("../../bin")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(base, 0o777); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(base, "_escape-") // go list of other tests ignores names with _
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if toolreg, err = filepath.EvalSymlinks(toolreg); err != nil {
		t.Fatal(err)
	}
	m := &escapeMachine{dir: dir, toolreg: toolreg, variables: map[string]string{"MARK": escapeSecret}, missing: map[string]string{}}
	m.workspace = filepath.Join(dir, "workspace")
	if out, err := exec.Command("git", "init", "-q", "-b", "main", m.workspace).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	(&escapePlace{dir: m.workspace}).files(t, map[string]string{".toolreg/settings.yaml": "tools: {}\n"})
	m.listen(t)
	m.sockets(t)
	m.shared(t)
	m.interfaces()
	m.disk()
	return m
}

// lacks returns why something that a program needs is not available; "" if it is.
func (m *escapeMachine) lacks(need string) string {
	switch {
	case need == "root" && os.Geteuid() != 0:
		return "needs root"
	case need == "cc" || need == "curl" || need == "ip" || need == "pkill":
		if _, err := exec.LookPath(need); err != nil {
			return "needs " + need
		}
	case need == "x86_64":
		var name unix.Utsname
		if unix.Uname(&name) != nil || unix.ByteSliceToString(name.Machine[:]) != "x86_64" {
			return "needs an x86-64 processor"
		}
	case need == "cgroup":
		if unix.Access("/sys/fs/cgroup", unix.W_OK) != nil {
			return "needs control groups that can be written"
		}
	case need == "init":
		if _, err := os.Stat("/proc/1/root/."); err != nil {
			return "the first process is protected: " + err.Error()
		}
	case strings.HasPrefix(need, "/"):
		if _, err := os.Stat(need); err != nil {
			return "needs " + need
		}
	case need == "vsock":
		return refused(unix.AF_VSOCK, unix.SOCK_STREAM)
	case need == "alg":
		return refused(unix.AF_ALG, unix.SOCK_SEQPACKET)
	}
	return m.missing[need]
}

// refused returns why sockets of this kind are not available; "" if they are.
func refused(family, kind int) string {
	fd, err := unix.Socket(family, kind, 0)
	if err != nil {
		return "no socket of this family: " + err.Error()
	}
	_ = unix.Close(fd)
	return ""
}

// listen starts TCP and UDP servers.
func (m *escapeMachine) listen(t *testing.T) {
	t.Helper()
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") })
	serve := func(network, address, variable string) error {
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), network, address)
		if err != nil {
			return err
		}
		server := httptest.NewUnstartedServer(hello)
		_ = server.Listener.Close()
		server.Listener = listener
		server.Start()
		t.Cleanup(server.Close)
		m.variables[variable] = strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
		return nil
	}
	if err := serve("tcp4", "0.0.0.0:0", "TCP"); err != nil {
		t.Fatal(err)
	}
	if err := serve("tcp6", "[::1]:0", "TCP6"); err != nil {
		m.missing["ipv6"] = err.Error()
	}
	udp, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = udp.Close() })
	m.variables["UDP"] = strconv.Itoa(udp.LocalAddr().(*net.UDPAddr).Port)
	go echo(udp)
}

// echo sends every datagram back.
func echo(conn *net.UDPConn) {
	buf := make([]byte, 512)
	for {
		n, from, err := conn.ReadFromUDP(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			_, _ = conn.WriteToUDP(buf[:n], from)
		}
	}
}

// sockets starts servers on Unix domain sockets, by path and by abstract name.
func (m *escapeMachine) sockets(t *testing.T) {
	t.Helper()
	tmp, err := os.MkdirTemp("/tmp", "toolreg-escape-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(tmp) })
	m.variables["TMPSECRET"] = filepath.Join(tmp, "secret")
	m.variables["ABSTRACT"] = fmt.Sprintf("toolreg-escape-%d", os.Getpid())
	m.variables["ABSTRACT_DGRAM"] = m.variables["ABSTRACT"] + "-datagrams"
	shm := fmt.Sprintf("/dev/shm/toolreg-escape-secret-%d", os.Getpid())
	t.Cleanup(func() { _ = os.Remove(shm) })
	m.variables["SHMSECRET"] = shm
	for _, path := range []string{m.variables["TMPSECRET"], shm} {
		if err := os.WriteFile(path, []byte(escapeSecret), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	paths := map[string]string{"DOCKER_SOCK": filepath.Join(m.dir, "docker.sock"), "BUS_SOCK": filepath.Join(m.dir, "bus"), "AGENT_SOCK": filepath.Join(tmp, "agent"), "ABSTRACT": "@" + m.variables["ABSTRACT"]}
	display := fmt.Sprintf("/tmp/.X11-unix/X%d", 1000+os.Getpid())
	if err := os.MkdirAll(filepath.Dir(display), 0o1777); err != nil {
		m.missing["display"] = err.Error()
	} else {
		paths["DISPLAY_SOCK"] = display
	}
	for variable, path := range paths {
		listener, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = listener.Close() })
		if variable != "ABSTRACT" {
			m.variables[variable] = path
		}
	}
	m.variables["LOG_SOCK"] = filepath.Join(m.dir, "log")
	for _, path := range []string{m.variables["LOG_SOCK"], "@" + m.variables["ABSTRACT_DGRAM"]} {
		conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
}

// shared creates shared memory, a message queue, semaphores and a key.
func (m *escapeMachine) shared(t *testing.T) {
	t.Helper()
	id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
	memory, err := unix.SysvShmAttach(id, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	copy(memory, escapeSecret)
	_ = unix.SysvShmDetach(memory)
	m.variables["SHMID"] = strconv.Itoa(id)
	key := 0x70010000 + os.Getpid()
	queue, _, errno := unix.Syscall(unix.SYS_MSGGET, uintptr(key), unix.IPC_CREAT|0o600, 0)
	set, _, errno2 := unix.Syscall(unix.SYS_SEMGET, uintptr(key), 1, unix.IPC_CREAT|0o600)
	if errno != 0 || errno2 != 0 {
		t.Fatal(errno, errno2)
	}
	t.Cleanup(func() {
		_, _, _ = unix.Syscall(unix.SYS_MSGCTL, queue, unix.IPC_RMID, 0)
		_, _, _ = unix.Syscall(unix.SYS_SEMCTL, set, 0, unix.IPC_RMID)
	})
	m.variables["MSGKEY"] = strconv.Itoa(key)
	if _, err := unix.AddKey("user", "toolreg-escape", []byte(escapeSecret), unix.KEY_SPEC_USER_KEYRING); err != nil {
		m.missing["keys"] = "no keys here: " + err.Error()
	}
}

// disk finds a disk that can be read.
func (m *escapeMachine) disk() {
	m.missing["disk"] = "no disk can be read"
	devices, _ := filepath.Glob("/sys/block/*")
	for _, device := range devices {
		path := filepath.Join("/dev", filepath.Base(device))
		if f, err := os.Open(path); err == nil {
			n, _ := f.Read(make([]byte, 4096))
			_ = f.Close()
			if n > 0 {
				m.variables["DISK"], m.missing["disk"] = path, ""
				return
			}
		}
	}
}

// interfaces finds an address and an interface of the machine.
func (m *escapeMachine) interfaces() {
	m.missing["interface"], m.missing["address"] = "no interface but the loopback", "no address but the loopback's"
	all, _ := net.Interfaces()
	for _, one := range all {
		if one.Flags&net.FlagLoopback != 0 {
			continue
		}
		m.variables["INTERFACE"], m.missing["interface"] = one.Name, ""
		addresses, _ := one.Addrs()
		for _, a := range addresses {
			if ip, _, err := net.ParseCIDR(a.String()); err == nil && ip.To4() != nil {
				m.variables["ADDRESS"], m.missing["address"] = ip.String(), ""
				return
			}
		}
	}
}

// escapePlace holds the home, the workspace and the neighbor process of one run.
type escapePlace struct {
	dir, home, work, outside string
	variables                map[string]string
	environ                  []string // of the program
}

// folder returns the folder of a program.
func (s *escapePlace) folder(p *escapeProgram) string {
	if p.isAlone() {
		return s.work
	}
	return filepath.Join(s.work, "of-"+p.name)
}

// place creates a place for programs with a neighbor, which lasts until the test ends.
func (m *escapeMachine) place(t *testing.T, programs []*escapeProgram) *escapePlace {
	t.Helper()
	dir, err := os.MkdirTemp(m.dir, "place-")
	if err != nil {
		t.Fatal(err)
	}
	s := &escapePlace{dir: dir, home: filepath.Join(dir, "home"), work: filepath.Join(dir, "work"), outside: filepath.Join(dir, "outside"), variables: map[string]string{}}
	maps.Copy(s.variables, m.variables)
	secret := filepath.Join(s.home, ".ssh/id_ed25519")
	s.files(t, map[string]string{
		"home/.ssh/id_ed25519": escapeSecret, "home/.aws/credentials": escapeSecret, "home/.gnupg/private-keys-v1.d/key": escapeSecret,
		"home/.netrc": escapeSecret, "home/.npmrc": escapeSecret, "home/.docker/config.json": escapeSecret, "home/.docker/bin/tool": "", "home/notes.txt": escapeSecret,
		"home/.mozilla/firefox/x.default/cookies.sqlite": escapeSecret, "home/.local/share/keyrings/login.keyring": escapeSecret,
		"home/.config/toolreg/settings.yaml": "# " + escapeSecret + "\n", "home/.local/state/toolreg/other.json": escapeSecret,
		"home/.cargo/credentials.toml": escapeSecret, "home/.cargo/bin/tool": "", "home/.acme/bin/tool": "", "home/.acme/token": escapeSecret, "home/.local/share/uv/credentials/tokens": escapeSecret, "home/.local/bin/tool": "",
		"home/.gitconfig": "[safe]\n\tdirectory = *\n[init]\n\tdefaultBranch = main\n[user]\n\tname = Ann\n\temail = ann@example.com\n", "home/.bashrc": "", "home/.profile": "",
		"home/.cache/go-build/00/entry": "", "home/.npm/_cacache/entry": "", "home/.cache/pip/entry": "",
		"outside/secret": escapeSecret, "outside/victim": "", "outside/toolreg": "",
	})
	folders := []string{s.work}
	for _, p := range programs {
		if !p.isAlone() {
			folders = append(folders, s.folder(p))
		}
	}
	links := map[string]string{s.home + "/.local/bin/worktool": s.work + "/tool"}
	for _, dir := range folders {
		if err := os.CopyFS(dir, os.DirFS(m.workspace)); err != nil {
			t.Fatal(err)
		}
		links[dir+"/waiting"] = secret
	}
	for link, target := range links {
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	s.environ = []string{"HOME=" + s.home, "PATH=" + s.work + "/.venv/bin:" + s.home + "/.local/bin:" + s.home + "/.docker/bin:" + s.home + "/.cargo/bin:" + s.home + "/.acme/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "TERM=xterm", "GORACE=atexit_sleep_ms=0", "LANG=C.UTF-8", "CALLERSECRET=" + escapeSecret}
	s.variables["HOME"], s.variables["OUTSIDE"], s.variables["TOOLREG_COPY"] = s.home, s.outside, filepath.Join(s.outside, "toolreg")
	if handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, secret, 0); err == nil {
		head := make([]byte, 0, 8)
		head = append(head, byte(handle.Size()), byte(handle.Size()>>8), byte(handle.Size()>>16), byte(handle.Size()>>24))
		kind := uint32(handle.Type())
		head = append(head, byte(kind), byte(kind>>8), byte(kind>>16), byte(kind>>24))
		s.variables["HANDLE"] = hex.EncodeToString(append(head, handle.Bytes()...))
	}
	s.neighbour(t)
	var text strings.Builder
	for name, value := range s.variables {
		if name != "HOME" {
			fmt.Fprintf(&text, "%s='%s'\n", name, value)
		}
	}
	if err := os.WriteFile(filepath.Join(s.work, "variables"), []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// files writes files below the place.
func (s *escapePlace) files(t *testing.T, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(s.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// neighbour starts a process outside of the sandbox with secrets in its environment and
// in an open file.
func (s *escapePlace) neighbour(t *testing.T) {
	t.Helper()
	secret, err := os.Open(filepath.Join(s.outside, "secret"))
	if err != nil {
		t.Fatal(err)
	}
	defer secret.Close()
	name := filepath.Base(s.dir)
	cmd := exec.Command("sleep", "300")
	cmd.Args[0] = "victim-" + name
	cmd.Dir, cmd.Env = s.outside, []string{"VICTIMSECRET=" + escapeSecret}
	cmd.ExtraFiles = []*os.File{secret}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	s.variables["VICTIM"], s.variables["VICTIM_NAME"] = strconv.Itoa(cmd.Process.Pid), name
	s.variables["VICTIMEXE"] = cmd.Path
}
