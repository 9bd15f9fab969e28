package browsertest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

const (
	// starts is how many times a browser is started that ends, or does not answer, before it has opened
	// its first page: that is a matter of the machine. A page that ends it would do so each time.
	starts = 5
	// limit is how long an answer may take. It only bounds a failure.
	limit = 2 * time.Minute
)

// flags make Chromium one that is driven by a program, in a container too: its shared memory is in files,
// as /dev/shm may be too small; a tab that is not in front is not slowed down; and nothing is reported,
// fetched or asked that a page has not asked for.
var flags = []string{
	"--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--allow-file-access-from-files",
	"--remote-debugging-pipe", "--disable-dev-shm-usage", "--no-first-run", "--no-default-browser-check",
	"--disable-breakpad", "--disable-background-networking", "--disable-component-update",
	"--disable-default-apps", "--disable-extensions", "--disable-sync", "--disable-field-trial-config",
	"--metrics-recording-only", "--password-store=basic", "--use-mock-keychain", "--disable-hang-monitor",
	"--disable-background-timer-throttling", "--disable-backgrounding-occluded-windows",
	"--disable-renderer-backgrounding", "--disable-features=OptimizationHints,MediaRouter,Translate",
}

// browser is a running Chromium. It is not safe for concurrent use.
type browser struct {
	cmd    *exec.Cmd
	dir    string // its home, with its profile and what it wrote to stderr
	in     *os.File
	out    *os.File
	lines  *bufio.Reader // of out
	serial int
	ended  error // why it can be used no more
}

// start starts a browser and opens a page in its first tab, whose session it returns.
func start(
	chromium, url string, logf func(format string, args ...any), width, height int, env ...string,
) (*browser, string, error) {
	for n := 1; ; n++ {
		b, err := run(chromium, width, height, env...)
		if err != nil {
			return nil, "", err
		}
		session, err := b.newTab(url)
		if err == nil {
			return b, session, nil
		}
		b.close()
		if n == starts {
			return nil, "", fmt.Errorf("chromium did not start in %d attempts: %w", n, err)
		}
		logf("starting chromium again: %v", err)
	}
}

// run starts Chromium with a home of its own, so that it shares no file with another one.
func run(chromium string, width, height int, env ...string) (*browser, error) {
	dir, err := os.MkdirTemp("", "browser")
	if err != nil {
		return nil, err
	}
	stderr, err := os.Create(filepath.Join(dir, "stderr"))
	if err != nil {
		return nil, err
	}
	defer stderr.Close()
	theirs, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	out, theirOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirOut.Close()
	cmd := exec.Command(chromium, flags...)
	cmd.Args = append(cmd.Args,
		"--user-data-dir="+filepath.Join(dir, "profile"), fmt.Sprintf("--window-size=%d,%d", width, height))
	cmd.Env = append(append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+filepath.Join(dir, "config"),
		"XDG_CACHE_HOME="+filepath.Join(dir, "cache")), env...)
	cmd.Stderr, cmd.ExtraFiles = stderr, []*os.File{theirs, theirOut}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &browser{cmd: cmd, dir: dir, in: in, out: out, lines: bufio.NewReaderSize(out, 1<<20)}, nil
}

// newTab opens a page in a tab with cookies of its own, and returns its session.
func (b *browser) newTab(url string) (string, error) {
	var person struct{ BrowserContextID string }
	var target struct{ TargetID string }
	var attached struct{ SessionID string }
	err := b.command("", "Target.createBrowserContext", map[string]any{}, &person)
	if err == nil {
		err = b.command("", "Target.createTarget",
			map[string]any{"url": "about:blank", "browserContextId": person.BrowserContextID}, &target)
	}
	if err == nil {
		err = b.command("", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	}
	if err == nil {
		err = b.command(attached.SessionID, "Page.navigate", map[string]any{"url": url}, nil)
	}
	return attached.SessionID, err
}

// command sends a command of the DevTools protocol and reads its result. The session is that of a tab, or
// empty for the browser itself.
func (b *browser) command(session, method string, params map[string]any, result any) error {
	if b.ended != nil {
		return b.ended
	}
	b.serial++
	message := map[string]any{"id": b.serial, "method": method, "params": params}
	if session != "" {
		message["sessionId"] = session
	}
	data, err := json.Marshal(message)
	if err != nil {
		return err
	}
	_ = b.out.SetReadDeadline(time.Now().Add(limit))
	_, err = b.in.Write(append(data, 0))
	for err == nil {
		var line []byte
		if line, err = b.lines.ReadBytes(0); err != nil {
			break
		}
		var answer struct {
			ID            int
			Result, Error json.RawMessage
		}
		switch err = json.Unmarshal(line[:len(line)-1], &answer); {
		case err != nil || answer.ID != b.serial:
		case answer.Error != nil:
			return fmt.Errorf("%s: %s", method, answer.Error)
		case result != nil:
			return json.Unmarshal(answer.Result, result)
		default:
			return nil
		}
	}
	b.wait()
	stderr, _ := os.ReadFile(filepath.Join(b.dir, "stderr"))
	b.ended = fmt.Errorf("%s: %w; chromium: %s; its stderr ends in:\n%s",
		method, err, b.cmd.ProcessState, stderr[max(0, len(stderr)-4000):])
	return b.ended
}

// wait waits for the end of the process, and brings it about after a while.
func (b *browser) wait() {
	late := time.AfterFunc(limit/10, func() { _ = b.cmd.Process.Kill() })
	_ = b.cmd.Wait()
	late.Stop()
}

// close ends the browser with all of its processes. One of those may still write to its home, which then stays.
func (b *browser) close() {
	if b.command("", "Browser.close", map[string]any{}, nil) == nil {
		b.wait()
	}
	_, _, _ = b.in.Close(), b.out.Close(), os.RemoveAll(b.dir)
}
