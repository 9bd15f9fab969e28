package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// apiSecrets are credentials of every kind. Those with quotes and backslashes are repeated
// with escapes in JSON.
var apiSecrets = map[string]string{
	"bearer.txt": "bearer-9f3c1a7e", "password.txt": "pass\"word<\\4b8d2é6f", "header.txt": "head\"er-7a5c9e1b", "query.txt": "query/2d6f&8a4c",
	"cookie.txt": "cookie-5e1b7d3a", "extra.txt": "extra-8c4a6f2e", "client.txt": "client-3e9d5b7f",
}

// What the authorization server issues, in the order of its answers.
var issued = []string{"code-1b3d5f7a", "access-2c4e6a8b", "refresh-3d5f7b9c", "access-4e6a8c0d", "refresh-5f7b9d1e"}

// credentialSettings has three APIs, because a request has only one Authorization. The
// documents of two come from the other origin, which must not get credentials with the
// request; that of the third comes from the API's own.
const credentialSettings = `fetch: {allowHosts: [127.0.0.1]}
openapi:
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
  login:
    spec: %[1]s/base/api.json
    baseUrl: %[1]s/base
    auth: {oauth: {tokenUrl: '%[3]s/token', authorizationUrl: '%[3]s/authorize', clientId: me, clientSecret: 'file:client.txt'}}
`

const credentialDocument = `{
"openapi": "3.0.0", "info": {"title": "API", "version": "1"}, "servers": [{"url": "%[1]s"}],
"paths": {
  "/echo": {"get": {"operationId": "echo", "description": %[2]q, "responses": {"200": {"description": "OK"}}}},
  "/fail": {"get": {"operationId": "fail", "responses": {"200": {"description": "OK"}}}},
  "/bytes": {"get": {"operationId": "bytes", "responses": {"200": {"description": "OK"}}}},
  "/break": {"get": {"operationId": "break", "responses": {"200": {"description": "OK"}}}},
  "/away": {
    "get": {"operationId": "away", "servers": [{"url": "%[1]s"}], "responses": {"200": {"description": "OK"}}},
    "post": {"operationId": "awayPost", "requestBody": {"content": {"application/json": {"schema": {"type": "object", "properties": {"a": {"type": "string"}}}}}}, "responses": {"200": {"description": "OK"}}}
  },
  "/round": {"get": {"operationId": "round", "responses": {"200": {"description": "OK"}}}}
}}`

// Credentials reach the origin of baseUrl and nothing else: no other server by redirects, not
// even by one that leads back, by servers in the document or by the request for the document,
// no output of any command even if the server repeats them, no file of toolreg but that of
// the login, and no command line. What a login consists of reaches only those whom it concerns.
func TestAPICredentialsStayWithTheirServer(t *testing.T) {
	t.Parallel()
	dir, command := inProject(t, "--settings", "s.yaml", "--yes", "-v")
	var api, other, authority *requestLog
	commandLines := make(chan string, 1000)
	other = newRequestLog(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api.json":
			fmt.Fprintf(w, credentialDocument, other.URL, "Repeats.")
		case "/back":
			http.Redirect(w, r, api.URL+"/base/returned", http.StatusFound)
		default:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"arrived": "elsewhere"}`)
		}
	})
	authority = newRequestLog(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/authorize" {
			http.Redirect(w, r, r.URL.Query().Get("redirect_uri")+"?code="+issued[0]+"&state="+r.URL.Query().Get("state"), http.StatusFound)
			return
		}
		at := 1
		if asked := authority.all(); strings.Contains(asked[len(asked)-1], "grant_type=refresh_token") {
			at = 3
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token": %q, "token_type": "Bearer", "refresh_token": %q}`, issued[at], issued[at+1])
	})
	api = newRequestLog(t, func(w http.ResponseWriter, r *http.Request) {
		commandLines <- processes(t, dir)
		var repeated bytes.Buffer
		_ = r.Write(&repeated)
		authorization := r.Header.Get("Authorization")
		_, encoded, _ := strings.Cut(authorization, " ")
		decoded, _ := base64.StdEncoding.DecodeString(encoded)
		if encoded == issued[1] && r.URL.Path != "/base/api.json" { // it has expired
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, repeated.String(), http.StatusUnauthorized)
			return
		}
		switch r.URL.Path {
		case "/base/api.json":
			w.Header().Set("ETag", encoded)
			fmt.Fprintf(w, credentialDocument, other.URL, "Repeats: "+authorization)
		case "/base/away":
			http.Redirect(w, r, other.URL+"/arrived?"+r.URL.RawQuery, http.StatusTemporaryRedirect)
		case "/base/round":
			http.Redirect(w, r, other.URL+"/back", http.StatusFound)
		case "/base/fail":
			w.Header().Set("Content-Type", "application/problem+json")
			w.Header().Set("WWW-Authenticate", authorization)
			w.Header().Set("Retry-After", encoded)
			w.WriteHeader(http.StatusForbidden)
			_ = json.NewEncoder(w).Encode(map[string]string{"title": authorization, "detail": repeated.String() + string(decoded)})
		case "/base/bytes":
			w.Header().Set("Content-Type", "application/"+encoded)
			fmt.Fprint(w, repeated.String(), "\x00\xff")
		case "/base/break":
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, repeated.String())
			panic(http.ErrAbortHandler)
		default:
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(map[string]string{"repeated": repeated.String(), "decoded": string(decoded), string(decoded): ""})
		}
	})
	writeFiles(t, dir, apiSecrets)
	writeFiles(t, dir, map[string]string{"s.yaml": fmt.Sprintf(credentialSettings, api.URL, other.URL, authority.URL)})
	secrets := slices.Clone(issued)
	for _, secret := range apiSecrets {
		escaped, _ := json.Marshal(secret)
		secrets = append(secrets, secret, string(escaped[1:len(escaped)-1]))
	}
	secrets = append(secrets, base64.StdEncoding.EncodeToString([]byte("ada:"+apiSecrets["password.txt"])), url.QueryEscape(apiSecrets["query.txt"]))
	check := func(where, text string, besides ...string) {
		t.Helper()
		for _, secret := range secrets {
			if at := strings.Index(text, secret); at >= 0 && !slices.Contains(besides, secret) {
				t.Errorf("%s has %q: …%s…", where, secret, text[max(0, at-100):min(len(text), at+100)])
			}
		}
	}
	login := command("servers", "login", "login")
	login.Env = append(login.Env, "BROWSER=mcp-browser")
	out, err := login.CombinedOutput()
	if check("servers login", string(out)); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var calls [][]string
	for _, tool := range []string{"echo", "fail", "bytes", "break", "away", "awayPost", "round"} {
		calls = append(calls, []string{"call", "api__" + tool}, []string{"call", "basic__" + tool, "--json"}, []string{"call", "login__" + tool, "--json"})
	}
	for _, argv := range append(calls, []string{"list", "--json"}, []string{"servers"}, []string{"settings", "show", "--json"}, []string{"settings", "show"}, []string{"doctor"},
		[]string{"why", "api__echo", "--json"}, []string{"discover", "--json"}, []string{"lock"}, []string{"audit", "--json"}) {
		out, _ := command(argv...).CombinedOutput()
		check(strings.Join(argv, " "), string(out))
		if argv[0] == "call" && !bytes.Contains(out, []byte("***")) && !regexp.MustCompile("away|round|break|basic__bytes").MatchString(argv[1]) {
			t.Errorf("%v: nothing is masked, so nothing was repeated:\n%s", argv, out)
		}
	}
	for _, request := range other.all() {
		check("a request to another origin", request)
	}
	check("the authorization server", strings.Join(authority.all(), "\n"), issued[0], issued[2], issued[4], apiSecrets["client.txt"])
	arrived := 0
	for _, request := range api.all() {
		check("a request to the API", request, secretsOfAPI(secrets)...)
		if strings.HasPrefix(request, "GET /base/returned ") {
			check("a request that another origin asked for", request)
			arrived++
		}
	}
	if arrived != 3 || len(other.all()) < 10 {
		t.Errorf("%d requests by way of the other origin, which got %d: not all was tested", arrived, len(other.all()))
	}
	close(commandLines)
	for line := range commandLines {
		check("a command line", line)
	}
	got := strings.Join(api.all(), "\n")
	for _, secret := range []string{"bearer.txt", "header.txt", "cookie.txt", "extra.txt"} {
		if !strings.Contains(got, apiSecrets[secret]) {
			t.Errorf("%s did not reach the API", secret)
		}
	}
	for _, secret := range append(secrets[len(secrets)-2:], issued[1], issued[3]) {
		if !strings.Contains(got, secret) {
			t.Errorf("%q did not reach the API", secret)
		}
	}
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || apiSecrets[filepath.Base(path)] != "" || strings.HasPrefix(filepath.Base(path), "login-") {
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

// secretsOfAPI returns the secrets that an API may get: all but those of a login.
func secretsOfAPI(all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(secret string) bool {
		return secret == apiSecrets["client.txt"] || slices.Contains(issued, secret) && !strings.HasPrefix(secret, "access-")
	})
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
