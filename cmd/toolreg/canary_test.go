//go:build unix

package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolreg/toolreg/internal/settings/table"
)

// canaries has a text for each secret of the settings, by the path of its row.
type canaries struct {
	texts map[string]string
	asRef bool // settings have a reference to a variable in place of the text
}

// of returns what the settings have for a row.
func (c *canaries) of(row string) string {
	text := c.texts[row]
	if text == "" {
		text = fmt.Sprintf("cnry%02dx5d3f9a7c1b4e6f8091a2b3c4d5e6f70", len(c.texts))
		c.texts[row] = text
	}
	if c.asRef {
		return "${CANARY_" + text[4:6] + "}"
	}
	return text
}

// environ returns the variables of the references.
func (c *canaries) environ() (out []string) {
	for _, text := range c.texts {
		out = append(out, "CANARY_"+text[4:6]+"="+text)
	}
	return out
}

// in returns the rows whose secrets are in an artefact, plain or in Base64.
func (c *canaries) in(artefact []byte) (out []string) {
	for row, text := range c.texts {
		for _, form := range []string{text, base64.StdEncoding.EncodeToString([]byte(text)), base64.StdEncoding.EncodeToString([]byte("me:" + text)), base64.RawURLEncoding.EncodeToString([]byte(text))} {
			if bytes.Contains(artefact, []byte(form)) {
				out = append(out, row)
				break
			}
		}
	}
	slices.Sort(out)
	return out
}

// echoes is a web server that tells all of a request in its answer, as a hostile or careless one
// does, and keeps what it gets as a collector of telemetry.
type echoes struct {
	mu       sync.Mutex
	exported bytes.Buffer
}

func (e *echoes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var head bytes.Buffer
	_ = r.Header.Write(&head)
	said := r.URL.String() + " " + strings.ReplaceAll(head.String(), "\r\n", "; ") + string(body)
	answer, _ := json.Marshal(map[string]string{"error": "invalid_client", "error_description": said, "title": said, "message": said})
	w.Header().Set("Content-Type", "application/json")
	switch {
	case strings.HasPrefix(r.URL.Path, "/otel/"):
		e.mu.Lock()
		e.exported.Write(body)
		e.mu.Unlock()
		w.WriteHeader(http.StatusOK)
		return
	case strings.HasPrefix(r.URL.Path, "/ok"):
	case strings.HasPrefix(r.URL.Path, "/denied"):
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token", error_description="`+strings.ReplaceAll(said, `"`, "'")+`"`)
		w.WriteHeader(http.StatusUnauthorized)
	default:
		w.WriteHeader(http.StatusBadRequest)
	}
	_, _ = w.Write(answer)
}

// secretRows returns the paths of the rows that the table declares to be secret.
func secretRows(rows []table.Row, prefix string) (out []string) {
	for i := range rows {
		path := prefix + rows[i].Name
		if rows[i].Secret && !rows[i].Foreign {
			out = append(out, path)
		}
		out = append(out, secretRows(rows[i].Fields, path+".")...)
	}
	return out
}

// settings returns settings with a secret in every row that the table declares to be one.
func (c *canaries) settings(url string) map[string]any {
	type object = map[string]any
	pairs := func(row string) object { return object{"X_TEAM": c.of(row)} }
	oauth := func(row, grant, secret string) object {
		return object{"grant": grant, "clientId": "me", "tokenUrl": url + "/token", "issuer": url, "idpIssuer": url, secret: c.of(row + ".oauth." + secret)}
	}
	shell := func(line string) []string { return []string{"-c", line} }
	servers := object{
		"headers": object{"url": url + "/mcp", "headers": pairs("mcpServers.headers")},
		"denied":  object{"url": url + "/denied", "headers": object{"Authorization": "Bearer " + c.of("mcpServers.headers")}},
		"env":     object{"command": "mcp-testserver", "env": pairs("mcpServers.env"), "trust": true},
		"fails":   object{"command": "sh", "args": shell(`echo "no: $X_TEAM" >&2; echo "out: $X_TEAM"; exit 1`), "env": pairs("mcpServers.env")},
		"other":   object{"command": "sh", "args": shell(`cat "$0"; cat "$0" >&2; exit 1`)},
		"from":    object{"command": "mcp-testserver", "from": object{"registry": url + "/reg", "name": "a/b", "version": "1.0.0", "runtime": "npm", "values": object{"KEY": []string{c.of("mcpServers.from.values")}}}},
	}
	apis := object{
		"headers": object{"headers": pairs("openapi.headers")},
		"bearer":  object{"auth": object{"bearer": c.of("openapi.auth.bearer")}},
		"basic":   object{"auth": object{"basic": object{"username": "me", "password": c.of("openapi.auth.basic.password")}}},
	}
	for _, in := range []string{"header", "query", "cookie"} {
		apis["key"+in] = object{"auth": object{"apiKey": object{"in": in, "name": "k", "value": c.of("openapi.auth.apiKey.value")}}}
	}
	for secret, grant := range map[string]string{"clientSecret": "client_credentials", "privateKey": "client_credentials", "assertion": "jwt_bearer", "idToken": "jwt_bearer"} {
		servers["oauth"+secret] = object{"url": url + "/denied", "oauth": oauth("mcpServers", grant, secret)}
		apis["oauth"+secret] = object{"auth": object{"oauth": oauth("openapi.auth", grant, secret)}}
	}
	for name, api := range apis {
		o := api.(object)
		o["spec"], o["trust"], o["baseUrl"] = "api.json", true, url+"/refused"
		if name == "bearer" || name == "keyquery" {
			o["baseUrl"] = url + "/ok"
		}
	}
	return object{
		"mcpServers": servers, "openapi": apis,
		"registries": []object{{"url": url + "/reg", "headers": pairs("registries.headers")}},
		"plugins":    object{"paths": []string{"plug"}, "settings": object{"p": pairs("plugins.settings")}},
		"env":        pairs("env"),
		"fetch":      object{"allowHosts": []string{"127.0.0.1"}, "headers": object{url: pairs("fetch.headers")}},
		"telemetry":  object{"endpoint": url + "/otel", "headers": pairs("telemetry.headers"), "content": true},
		"serve":      object{"stateKey": c.of("serve.stateKey"), "store": "redis://me:" + c.of("serve.store") + "@127.0.0.1:1/0"},
		"audit":      object{"params": true}, "cache": object{"discovery": "1h"}, "approvalMode": "yolo",
		"toolDiscoveryCommand": []string{"sh", "-c", `echo "noise $X_TEAM" >&2; echo '[{"name":"found"}]'`}, "toolCallCommand": []string{"sh", "-c", `env; env >&2; exit 1`},
	}
}

// A secret in any row that the table declares to be one is in nothing that is kept, exported,
// recorded, logged or shown, however it is spelled in the settings and whoever repeats it.
func TestSecretsStayInTheSettings(t *testing.T) {
	t.Parallel()
	for _, asRef := range []bool{false, true} {
		t.Run(map[bool]string{false: "texts", true: "references"}[asRef], func(t *testing.T) {
			t.Parallel()
			var web echoes
			h := httptest.NewServer(&web)
			t.Cleanup(h.Close)
			c := &canaries{texts: map[string]string{}, asRef: asRef}
			dir, command := inProject(t, "--settings", "s.json", "--no-user-settings")
			write := func(name, text string) {
				t.Helper()
				path := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			doc := c.settings(h.URL)
			for _, row := range secretRows(table.NewIndex().Rows, "") {
				if c.texts[row] == "" {
					t.Errorf("no secret in the row %s", row)
				}
			}
			write("leak.txt", strings.Join(c.environ(), "\n"))
			servers := doc["mcpServers"].(map[string]any)
			other := servers["other"].(map[string]any)
			other["args"] = append(other["args"].([]string), filepath.Join(dir, "leak.txt"))
			text, err := json.Marshal(doc)
			if err != nil {
				t.Fatal(err)
			}
			write("s.json", string(text))
			write("api.json", `{"openapi":"3.0.0","info":{"title":"a","version":"1"},"paths":{"/x":{"get":{"operationId":"op","responses":{"200":{"description":"d"}}}}}}`)
			write("plug/p/plugin.yaml", "id: p\ntools:\n  - {name: plug, command: [sh, -c, 'env; cat; env >&2; exit 1']}\n")
			check := func(what string, data []byte) {
				t.Helper()
				if rows := c.in(data); len(rows) > 0 {
					t.Errorf("%s has the secrets of %v", what, rows)
					if os.Getenv("CANARY_SHOW") != "" {
						t.Logf("%s", data)
					}
				}
			}
			run := func(stdoutToo bool, args ...string) {
				t.Helper()
				cmd := command(append([]string{"-v"}, args...)...)
				cmd.Env = append(cmd.Env, c.environ()...)
				var out, errOut bytes.Buffer
				cmd.Stdout, cmd.Stderr = &out, &errOut
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				limit := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
				if args[0] == "serve" { // it tries to reach the store for ever
					limit.Reset(2 * time.Second)
				}
				_ = cmd.Wait() // most of them fail
				limit.Stop()
				check("stderr of "+strings.Join(args, " "), errOut.Bytes())
				if stdoutToo {
					check("stdout of "+strings.Join(args, " "), out.Bytes())
				}
			}
			run(true, "settings", "show")
			run(true, "settings", "show", "--json")
			run(true, "doctor")
			run(true, "doctor", "--json")
			run(true, "discover", "--json")
			run(true, "servers", "--json")
			run(true, "list", "--all", "--json")
			run(true, "servers", "find", "x")
			run(true, "servers", "outdated")
			run(true, "lock")
			var recordings []string
			for i, call := range [][]string{{"found"}, {"plug"}, {"headers__op"}, {"bearer__op"}, {"basic__op"}, {"keyheader__op"}, {"keyquery__op"}, {"keycookie__op"}, {"oauthclientSecret__op"}, {"oauthprivateKey__op"}, {"oauthassertion__op"}, {"oauthidToken__op"},
				{"web_fetch", "url=" + h.URL + "/ok"}, {"web_fetch", "url=" + h.URL + "/x"}, {"env__env", `names=["X_TEAM"]`}, {"headers__x"}, {"denied__x"}, {"oauthclientSecret__x"}, {"fails__x"}, {"other__x"}} {
				recordings = append(recordings, fmt.Sprintf("rec%d.jsonl", i))
				run(false, append([]string{"--record", recordings[i], "call"}, call...)...)
				run(call[0] != "web_fetch", append([]string{"--replay", recordings[i], "call"}, call...)...) // its result is that of the call
			}
			run(true, "serve", "--http", "127.0.0.1:0", "--no-auth")
			run(true, "audit", "--json")
			run(true, "stats", "--json")
			run(true, "why", "run_shell_command", "command=ls", "--json")
			cmd := command("rpc")
			cmd.Env = append(cmd.Env, c.environ()...)
			host := startRPC(t, cmd)
			for method, params := range map[string]any{"list": nil, "why": tool("plug", map[string]any{}), "call": tool("other__x", map[string]any{})} {
				got := host.call(method, params)
				check("rpc "+method, got.Result)
				if got.Error != nil {
					check("rpc "+method, []byte(fmt.Sprint(got.Error)))
				}
			}
			for _, m := range host.told {
				check("rpc "+m.Method, m.Params)
			}
			web.mu.Lock()
			check("telemetry", web.exported.Bytes())
			if web.exported.Len() == 0 {
				t.Error("nothing was exported")
			}
			web.mu.Unlock()
			kept := 0
			err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
				if err != nil || !d.Type().IsRegular() || d.Name() == "s.json" || d.Name() == "leak.txt" {
					return err
				}
				data, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				kept++
				check("the file "+strings.TrimPrefix(path, dir), data)
				return nil
			})
			if err != nil || kept < len(recordings)+3 {
				t.Errorf("%d files, %v", kept, err)
			}
		})
	}
}
