package browsertest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"
)

// Tab is a tab of a browser that talks to real servers. It is driven over a pipe with
// Chromium's DevTools protocol. It is not safe for concurrent use.
type Tab struct {
	t       *testing.T
	browser *browser
	session string
}

// Open opens a page in a new browser with a window of the given size. env is added to its
// environment. Without Chromium the test is skipped.
func Open(t *testing.T, url string, width, height int, env ...string) *Tab {
	t.Helper()
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed; make page installs it")
	}
	b, session, err := start(chromium, url, t.Logf, width, height, env...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.close)
	tab := &Tab{t: t, browser: b, session: session}
	tab.loaded(url)
	return tab
}

// Another opens a page in a new tab of the same browser, which has cookies of its own.
func (tab *Tab) Another(url string) *Tab {
	tab.t.Helper()
	session, err := tab.browser.newTab(url)
	if err != nil {
		tab.t.Fatal(err)
	}
	next := &Tab{t: tab.t, browser: tab.browser, session: session}
	next.loaded(url)
	return next
}

// Go opens another page in the tab.
func (tab *Tab) Go(url string) {
	tab.t.Helper()
	tab.Send("Page.navigate", map[string]any{"url": url})
	tab.loaded(url)
}

// loaded waits until the page is there.
func (tab *Tab) loaded(url string) {
	tab.t.Helper()
	tab.Wait(fmt.Sprintf("document.readyState === 'complete' && location.href.startsWith(%q)", url))
}

// Eval evaluates JavaScript in the page, waits for it if it is a promise, and returns its value
// as text.
func (tab *Tab) Eval(script string) string {
	tab.t.Helper()
	text, err := tab.eval(script)
	if err != nil {
		tab.t.Fatalf("%s: %v", script, err)
	}
	return text
}

func (tab *Tab) eval(script string) (string, error) {
	var out struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	if err := tab.browser.command(tab.session, "Runtime.evaluate",
		map[string]any{"expression": script, "awaitPromise": true, "returnByValue": true, "userGesture": true},
		&out); err != nil {
		return "", err // such as that of a page that is being left
	}
	if out.ExceptionDetails != nil {
		return "", fmt.Errorf("%s", out.ExceptionDetails)
	}
	var text string
	if json.Unmarshal(out.Result.Value, &text) == nil {
		return text, nil
	}
	return string(out.Result.Value), nil
}

// Wait waits until a condition in JavaScript is true.
func (tab *Tab) Wait(condition string) {
	tab.t.Helper()
	deadline := time.Now().Add(limit)
	for {
		value, err := tab.eval("Boolean(" + condition + ")")
		if value == "true" {
			return
		}
		if tab.browser.ended != nil {
			tab.t.Fatalf("%s: %v", condition, err)
		}
		if time.Now().After(deadline) {
			tab.t.Fatalf("never true: %s (%v); the page says: %.2000s",
				condition, err, tab.Eval("document.body?.innerText"))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Key presses a key, such as "Tab" or "Enter".
func (tab *Tab) Key(key string) {
	tab.t.Helper()
	codes := map[string]int{"Tab": 9, "Enter": 13, "/": 191}
	params := map[string]any{"type": "keyDown", "key": key, "code": key, "windowsVirtualKeyCode": codes[key]}
	switch key {
	case "Enter":
		params["text"] = "\r"
	case "/":
		params["text"] = "/"
	}
	tab.Send("Input.dispatchKeyEvent", params)
	params["type"] = "keyUp"
	delete(params, "text")
	tab.Send("Input.dispatchKeyEvent", params)
}

// Screenshot writes a picture of the window as PNG.
func (tab *Tab) Screenshot(file string) {
	tab.t.Helper()
	var out struct{ Data string }
	tab.send("Page.captureScreenshot", map[string]any{"format": "png"}, &out)
	data, err := base64.StdEncoding.DecodeString(out.Data)
	if err == nil {
		err = os.WriteFile(file, data, 0o600)
	}
	if err != nil {
		tab.t.Fatal(err)
	}
}

// Send sends a command of the DevTools protocol.
func (tab *Tab) Send(method string, params map[string]any) {
	tab.t.Helper()
	tab.send(method, params, nil)
}

func (tab *Tab) send(method string, params map[string]any, result any) {
	tab.t.Helper()
	if err := tab.browser.command(tab.session, method, params, result); err != nil {
		tab.t.Fatal(err)
	}
}
