package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// apiSecrets are the credentials of one API, of every kind.
var apiSecrets = map[string]string{
	"bearer.txt": "bearer-9f3c1a7e", "password.txt": "password-4b8d2e6f", "header.txt": "header-7a5c9e1b", "query.txt": "query-2d6f8a4c",
	"cookie.txt": "cookie-5e1b7d3a", "extra.txt": "extra-8c4a6f2e",
}

// credentialSettings has two APIs, because a request has only one Authorization. Their
// documents come from the other origin, which must not get credentials with the request.
const credentialSettings = `openapi:
  api:
    spec: %[2]s/api.json
    baseUrl: %[1]s/base
    headers: {X-Extra: 'file:extra.txt'}
    auth:
      - bearer: file:bearer.txt
      - apiKey: {in: header, name: X-Key, value: 'file:header.txt'}
      - apiKey: {in: query, name: key, value: 'file:query.txt'}
      - apiKey: {in: cookie, name: session, value: 'file:cookie.txt'}
  basic:
    spec: %[2]s/api.json
    baseUrl: %[1]s/base
    auth: {basic: {username: ada, password: 'file:password.txt'}}
`

const credentialDocument = `{
"openapi": "3.0.0", "info": {"title": "API", "version": "1"}, "servers": [{"url": "%[1]s"}],
"paths": {
  "/echo": {"get": {"operationId": "echo", "responses": {"200": {"description": "OK"}}}},
  "/fail": {"get": {"operationId": "fail", "responses": {"200": {"description": "OK"}}}},
  "/break": {"get": {"operationId": "break", "responses": {"200": {"description": "OK"}}}},
  "/away": {
    "get": {"operationId": "away", "servers": [{"url": "%[1]s"}], "responses": {"200": {"description": "OK"}}},
    "post": {"operationId": "awayPost", "requestBody": {"content": {"application/json": {"schema": {"type": "object", "properties": {"a": {"type": "string"}}}}}}, "responses": {"200": {"description": "OK"}}}
  },
  "/round": {"get": {"operationId": "round", "responses": {"200": {"description": "OK"}}}}
}}`

// Credentials reach the origin of baseUrl and nothing else: no other server by redirects,
// by servers in the document or by the request for the document, no output of any command
// even if the server repeats them, no file of toolreg and no command line.
func TestAPICredentialsStayWithTheirServer(t *testing.T) {
	t.Parallel()
	dir, command := inProject(t, "--settings", "s.yaml", "--yes", "-v")
	var api, other *requestLog
	commandLines := make(chan string, 1000)
	other = newRequestLog(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api.json":
			fmt.Fprintf(w, credentialDocument, other.URL)
		case "/back":
			http.Redirect(w, r, api.URL+"/base/echo", http.StatusFound)
		default:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"arrived": "elsewhere"}`)
		}
	})
	api = newRequestLog(t, func(w http.ResponseWriter, r *http.Request) {
		commandLines <- processes(t, dir)
		var repeated bytes.Buffer
		_ = r.Write(&repeated)
		authorization := r.Header.Get("Authorization")
		_, encoded, _ := strings.Cut(authorization, " ")
		decoded, _ := base64.StdEncoding.DecodeString(encoded)
		switch r.URL.Path {
		case "/base/away":
			http.Redirect(w, r, other.URL+"/arrived?"+r.URL.RawQuery, http.StatusTemporaryRedirect)
		case "/base/round":
			http.Redirect(w, r, other.URL+"/back", http.StatusFound)
		case "/base/fail":
			w.Header().Set("Content-Type", "application/problem+json")
			w.Header().Set("WWW-Authenticate", authorization)
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, `{"title": %q, "detail": %q}`, authorization, repeated.String()+string(decoded))
		case "/base/break":
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, repeated.String())
			panic(http.ErrAbortHandler)
		default:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"repeated": %q, "decoded": %q}`, repeated.String(), decoded)
		}
	})
	writeFiles(t, dir, apiSecrets)
	writeFiles(t, dir, map[string]string{"s.yaml": fmt.Sprintf(credentialSettings, api.URL, other.URL)})
	var secrets []string
	for _, secret := range apiSecrets {
		secrets = append(secrets, secret)
	}
	secrets = append(secrets, base64.StdEncoding.EncodeToString([]byte("ada:"+apiSecrets["password.txt"])))
	check := func(where, text string) {
		t.Helper()
		for _, secret := range secrets {
			if at := strings.Index(text, secret); at >= 0 {
				t.Errorf("%s has %q: …%s…", where, secret, text[max(0, at-100):min(len(text), at+100)])
			}
		}
	}
	var calls [][]string
	for _, tool := range []string{"echo", "fail", "break", "away", "awayPost", "round"} {
		calls = append(calls, []string{"call", "api__" + tool}, []string{"call", "basic__" + tool, "--json"}, []string{"call", "api__" + tool, "--json"})
	}
	for _, argv := range append(calls, []string{"list", "--json"}, []string{"servers"}, []string{"servers", "--json"}, []string{"settings", "show", "--json"}, []string{"settings", "show"}, []string{"doctor"},
		[]string{"why", "api__echo", "--json"}, []string{"discover", "--json"}, []string{"lock"}, []string{"audit", "--json"}, []string{"call", "api__echo", "--record", "record.jsonl"}) {
		cmd := command(argv...)
		out, _ := cmd.CombinedOutput()
		check(strings.Join(argv, " "), string(out))
	}
	for _, request := range other.all() {
		check("a request to another origin", request)
	}
	if len(other.all()) == 0 {
		t.Error("nobody asked the other origin, so nothing was tested")
	}
	close(commandLines)
	for line := range commandLines {
		check("a command line", line)
	}
	arrived := strings.Join(api.all(), "\n")
	for _, secret := range secrets {
		if secret != apiSecrets["password.txt"] && !strings.Contains(arrived, secret) {
			t.Errorf("%q did not reach the API", secret)
		}
	}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || apiSecrets[filepath.Base(path)] != "" {
			return err
		}
		data, err := os.ReadFile(path)
		check(path, string(data))
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// processes returns the command lines and environments of the processes that run in dir.
func processes(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Error(err)
	}
	for _, folder := range folders {
		if cwd, err := os.Readlink(filepath.Join(folder, "cwd")); err != nil || !strings.HasPrefix(cwd, dir) {
			continue
		}
		for _, name := range []string{"cmdline", "environ"} {
			data, _ := os.ReadFile(filepath.Join(folder, name)) // the process may have ended
			b.Write(data)
		}
	}
	return b.String()
}
