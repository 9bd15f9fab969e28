package agents

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/settings/document"
)

// found reads the files of a program in testdata, as if the project were at
// /srv/project, and renders the servers.
func found(t *testing.T, program string) []string {
	t.Helper()
	var out []string
	for _, f := range (Importer{}).Files(program, "/srv/project", []string{"HOME=/home/me"}) {
		path := strings.Replace(strings.Replace(f.Path, "/srv/project", "testdata/project", 1), "/home/me", "testdata/home", 1)
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		servers, problems := f.Read(&document.Foreign{}, f.Path, data)
		for _, p := range problems {
			t.Errorf("%s: %s", path, p)
		}
		for _, s := range servers {
			kind := "user"
			if f.Project {
				kind = "project"
			}
			text := string(s.JSON)
			if s.Problem != "" {
				text = "left out: " + s.Problem
			}
			out = append(out, fmt.Sprintf("%s %s:%d %s", kind, s.Name, s.Pos.Line, text))
		}
	}
	return out
}

// The samples are at the locations that the programs use on Linux.
func TestServersOfEveryProgram(t *testing.T) {
	want := map[string][]string{
		"gemini": {
			`project github:6 {"httpUrl":"https://api.githubcopilot.com/mcp/","headers":{"Authorization":"Bearer $GITHUB_TOKEN"},"timeout":5000}`,
			`project local:11 {"command":"python","args":["-m","srv","${HOME}/x"],"env":{"A":"${}cmd:id","N":"1"},"cwd":"./srv","trust":true,"includeTools":["a"]}`,
			`project old:12 {"command":"x"}`, // excluded by mcp.excluded: see TestGeminiSwitchesServersOff
			`user mine:1 {"url":"http://localhost:8080/sse","description":"mine"}`,
		},
		"antigravity": {
			`project feed:3 {"url":"https://feeds.example/mcp","headers":{"Authorization":"Bearer ${FEED_TOKEN}"},"excludeTools":["publish_feed"]}`,
			`project db:8 {"command":"./bin/db-mcp","args":["--read-only"],"env":{"PGPORT":"5432"}}`,
			`project old:9 {"command":"./bin/planner","disabled":true}`,
			`project signed:10 {"url":"https://o/mcp","oauth":{"clientId":"id","clientSecret":"${S}"}}`,
			"project google:11 left out: authProviderType is not supported; use cmd:COMMAND as a value in headers",
			`user both:1 {"url":"https://both.example/mcp"}`,
			`user earlier:1 {"command":"srv"}`,
		},
		"claude": {
			`user here:8 {"command":"srv","type":"stdio"}`,
			`project shared:3 {"command":"npx","args":["-y","@scope/server","--cost=$$5","${CACHE_DIR:-/tmp/c}"],"env":{"API_KEY":"${API_KEY}","TEXT":"${}file:not-a-reference"},"type":"stdio"}`,
			`project api:9 {"url":"${BASE_URL:-https://api.example.com}/mcp","type":"http","headers":{"Authorization":"Bearer ${TOKEN}"}}`,
			`project helped:10 left out: headersHelper is not supported; use cmd:COMMAND as a value in headers`,
			`project odd:11 left out: its type must be stdio, http or sse`,
			`project broken:12 left out: its entry does not have the expected form: unexpected string in args`,
			`project signed:13 {"url":"https://o/mcp","type":"http","timeout":120000,"oauth":{"clientId":"id","scopes":["a","b"],"redirectUri":"http://localhost:8080/callback"}}`,
			`project hasty:14 {"command":"x"}`,
			`user everywhere:12 {"url":"https://sse.example.com/sse","type":"sse"}`,
		},
		"claude-desktop": {
			`user filesystem:1 {"command":"npx","args":["-y","@modelcontextprotocol/server-filesystem","/home/me/$$x"]}`,
		},
		"vscode": {
			"project asks:4 left out: it asks for the input \"key\", which only the editor can give; add the server with `toolreg servers add` and env:NAME",
			`project playwright:5 {"command":"npx","args":["-y","@playwright/mcp@latest","--dir","/srv/project/out","project"],"cwd":"/srv/project"}`,
			`project github:6 {"url":"https://api.githubcopilot.com/mcp","type":"http","headers":{"X":"${GH:-}"}}`,
			`project file:7 left out: envFile is not supported; put its variables into env`,
			`project chosen:8 left out: its variable ${command:pick} is not supported`,
			`project signed:9 {"url":"https://o/mcp","type":"http","oauth":{"clientId":"id"}}`,
			`project confined:10 left out: sandboxEnabled is not supported; add the server to mcpServers, and confine it by sandbox.servers`,
			`project shared:3 {"command":"npx","args":["-y","@scope/server","--cost=$$5","${CACHE_DIR:-/tmp/c}"],"env":{"API_KEY":"${API_KEY}","TEXT":"${}file:not-a-reference"},"type":"stdio"}`,
			`project api:9 {"url":"${BASE_URL:-https://api.example.com}/mcp","type":"http","headers":{"Authorization":"Bearer ${TOKEN}"}}`,
			`project helped:10 left out: headersHelper is not supported; use cmd:COMMAND as a value in headers`,
			`project odd:11 left out: its type must be stdio, http or sse`,
			`project broken:12 left out: its entry does not have the expected form: unexpected string in args`,
			`project signed:13 {"url":"https://o/mcp","type":"http","oauth":{"clientId":"id","scopes":["a","b"],"redirectUri":"http://localhost:8080/callback"}}`,
			`project hasty:14 {"command":"x"}`,
			`project deployed:1 {"command":"srv","type":"stdio"}`,
			`user memory:1 {"command":"npx","args":["-y","@modelcontextprotocol/server-memory"],"env":{"MEMORY_FILE_PATH":"${HOME}/m.json"},"type":"stdio"}`,
			`user all:3 {"command":"npx","args":["-y","x"],"env":{"K":"${K}"},"type":"stdio"}`,
			`user some:4 {"url":"https://s/mcp","type":"http","includeTools":["read","list"]}`,
			`user none:5 {"url":"https://n/sse","type":"sse","includeTools":[]}`,
		},
		"cursor": {
			`project db:1 {"command":"uvx","args":["db","/srv/project"],"env":{"DSN":"${DSN:-}"}}`,
			`project web:1 {"url":"https://mcp.example.com","headers":{"Authorization":"Bearer ${T:-}"}}`,
			`project signed:1 {"url":"https://o/mcp","oauth":{"clientId":"${ID:-}","clientSecret":"${SECRET:-}","scopes":["a"]}}`,
		},
		"codex": {
			`project docs:1 {"command":"docs-server","cwd":"/srv"}`,
			`project linear:3 left out: it has no command and no url; parts of an entry in another file are not merged`,
			`user context7:4 {"command":"npx","args":["-y","@upstash/context7-mcp"],"env":{"MY_ENV":"$$literal","LOCAL_TOKEN":"${LOCAL_TOKEN:-}","REMOTE":"${REMOTE:-}"},"timeout":"45.5s","connectTimeout":"20s"}`,
			`user figma:14 {"url":"https://mcp.figma.com/mcp","headers":{"X-Figma-Region":"us-east-1","Authorization":"Bearer ${FIGMA_OAUTH_TOKEN}","X-Key":"${FIGMA_KEY}"},"includeTools":["open","screenshot"],"excludeTools":["screenshot"],"disabled":true}`,
			`user with.dot:23 left out: its table does not have the expected form: unexpected value in command`,
			`user linear:26 {"url":"https://mcp.linear.app/mcp","oauth":{"clientId":"$$id","scopes":["read","write"],"redirectUri":"http://127.0.0.1:1455/callback","resource":"https://mcp.linear.app"}}`,
			`user helped:34 left out: http_headers_helper is not supported; use cmd:COMMAND as a value in headers`,
			`user chatgpt:38 left out: auth is not supported, except oauth`,
		},
		"windsurf": {
			`project docs:1 `, // switched off
			`project docs:4 {"url":"https://d.example.com/sse","type":"sse","headers":{"K":"${K:-}"}}`,
			`project signed:5 {"url":"https://o/mcp","type":"http","oauth":{"clientId":"id","clientSecret":"${S:-}"}}`,
			`user mine:1 {"command":"node","args":["s.js"],"type":"stdio"}`,
			`user github:3 {"command":"npx","args":["-y","@modelcontextprotocol/server-github"],"env":{"GITHUB_PERSONAL_ACCESS_TOKEN":"file:/home/me/.token"},"disabled":true}`,
			`user remote:4 {"url":"https://r.example.com/mcp","headers":{"API_KEY":"Bearer ${AUTH:-}"},"excludeTools":["rm"]}`,
		},
		"opencode": {
			`project everything:4 {"command":"npx","args":["-y","@modelcontextprotocol/server-everything"],"env":{"A":"${A:-}","B":"$$B {x}"}}`,
			`project sentry:5 {"url":"https://mcp.sentry.dev/mcp"}`,
			`project keyed:6 {"url":"https://k/mcp","headers":{"KEY":"file:${HOME}/.key"},"disabled":true}`,
			`project string:7 left out: its command is not a list of strings`,
			`user v2:1 {"command":"v2"}`,
			`user signed:1 {"url":"https://o/mcp","oauth":{"clientId":"id","clientSecret":"${S:-}","scopes":["a","b"],"redirectUri":"http://127.0.0.1:1/mcp/oauth/callback"}}`,
		},
		"zed": {
			`project local:4 {"command":"uv","args":["run","$$HOME"],"env":{"K":"${}env:PATH"}}`,
			`project older:5 {"command":"node","args":["s.js"]}`,
			`project extension:6 left out: it belongs to an extension of the editor`,
			`project remote:7 {"url":"https://z/mcp","headers":{"Authorization":"Bearer x"},"timeout":"90s","oauth":{"clientId":"id","clientSecret":"${}cmd:id"},"disabled":true}`,
		},
		"mcporter": {
			`project context7:3 {"url":"https://mcp.context7.com/mcp","headers":{"Authorization":"${CONTEXT7_API_KEY}"},"description":"Docs"}`,
			`project browser:4 {"command":"npx","args":["-y","@playwright/mcp"],"env":{"A":"${A:-b}"},"lifecycle":{"mode":"keep-alive","idleTimeoutMs":60000}}`,
			`project signed:5 {"url":"https://o/mcp","includeTools":["x"],"oauth":{"clientId":"id","scopes":["a"],"redirectUri":"http://localhost:1/cb"}}`,
			`project token:6 {"url":"https://t/mcp","headers":{"Authorization":"Bearer ${T}"},"excludeTools":["y"]}`,
			`user tools:1 {"command":"tools-server","lifecycle":"ephemeral"}`,
		},
	}
	for _, program := range (Importer{}).Programs() {
		if diff := cmp.Diff(want[program], found(t, program)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", program, diff)
		}
	}
}
