package values

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/trust"
)

func TestReferences(t *testing.T) {
	dir := trust.Real(t.TempDir())
	for name, text := range map[string]string{"token": "s3cret\n", "two": "a\n\n", "crlf": "x\r\n", "print.sh": "echo \"$1|$PATH_SEEN|$SECRET\"\n", "fail.sh": "echo no >&2; exit 3\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	x := NewExpander(dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "SECRET=hidden", "NAME=token", "SPACED=a b"})
	tests := []struct{ in, want, fails string }{
		{"env:NAME", "token", ""},
		{"env:NONE", "", "$NONE is not set"},
		{"env:prod,team:x", "env:prod,team:x", ""}, // a tag, not a reference
		{"file:token", "s3cret", ""},
		{"file:" + dir + "/token", "s3cret", ""},
		{"file:~/token", "s3cret", ""},
		{"file:$NAME", "s3cret", ""},
		{"file:two", "a\n", ""},
		{"file:crlf", "x", ""},
		{"file:missing", "", "reading a file: reference"},
		{"file:/dev/zero", "", "not a regular file"},
		{"file:///etc/passwd", "file:///etc/passwd", ""}, // a URL
		{"cmd:echo hi there", "hi there", ""},
		{"cmd:echo $SPACED", "a b", ""},
		{"cmd:sh print.sh $SPACED", "a b||", ""}, // one word; no secrets in its environment
		{"cmd:sh fail.sh", "", "running cmd:sh for a value: exit code 3"},
		{"cmd:true", "", "it printed nothing"},
		{"cmd:no-such-program-here x", "", "running cmd:no-such-program-here"},
		{"cmd:a | b", "", "shell syntax"},
		{"cmd:", "cmd:", ""},
		{"xcmd:id", "xcmd:id", ""},
		{" cmd:id", " cmd:id", ""},
		{"${NONE:-cmd:id}", "cmd:id", ""}, // plain text that looks like a reference
	}
	for _, test := range tests {
		t.Run(test.in, func(t *testing.T) {
			got, err := x.Secret(t.Context(), test.in, settings.ScopeUser)
			if test.fails != "" {
				if err == nil || !strings.Contains(err.Error(), test.fails) {
					t.Errorf("%q, error %v, want %q", got, err, test.fails)
				}
				return
			}
			if err != nil || got != test.want {
				t.Errorf("%q, %v, want %q", got, err, test.want)
			}
		})
	}
}

func TestExpandServer(t *testing.T) {
	x := NewExpander("/p", []string{"A=1", "T=tok"})
	in := settings.Server{
		Name: "s", Command: "$A", Args: []string{"-x", "${T}", "K: ${K}$$"}, Cwd: "$A/d", URL: "https://h/$A", HTTPURL: "https://i/$A",
		Env: []settings.Pair{{Name: "K", Value: "env:T"}}, Headers: []settings.Pair{{Name: "H", Value: "Bearer $T"}},
		OAuth: &settings.OAuth{ClientID: "$A", ClientSecret: "env:T", Scopes: []string{"$A"}}, Origin: settings.Origin{Scope: settings.ScopeUser, Name: "f.yaml", Line: 3},
	}
	got, err := x.Server(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	want := in
	want.Command, want.Args, want.Cwd, want.URL, want.HTTPURL = "1", []string{"-x", "tok", "K: ${K}$"}, "1/d", "https://h/1", "https://i/1"
	want.Env, want.Headers = []settings.Pair{{Name: "K", Value: "tok"}}, []settings.Pair{{Name: "H", Value: "Bearer tok"}}
	want.OAuth = &settings.OAuth{ClientID: "1", ClientSecret: "tok", Scopes: []string{"1"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("server (-want +got):\n%s", diff)
	}
	if in.Env[0].Value != "env:T" || in.Args[1] != "${T}" || in.OAuth.ClientID != "$A" {
		t.Error("the server that was passed in has changed")
	}
}

func TestServerErrorsContainOriginButNoValue(t *testing.T) {
	x := NewExpander("/p", []string{"CR=secret-value\r\nX: y", "U=file:///secret-value", "NUL=secret-value\x00"})
	at := settings.Origin{Scope: settings.ScopeUser, Name: "f.yaml", Line: 3}
	tests := []struct {
		name   string
		server settings.Server
		want   string
	}{
		{"unset", settings.Server{URL: "$NONE"}, "f.yaml:3: mcpServers.s: $NONE is not set; set it, or write ${NONE:-default}"},
		{"header", settings.Server{Headers: []settings.Pair{{Name: "H", Value: "$CR", Origin: at}}},
			"f.yaml:3: mcpServers.s.headers.H: the value of header H contains a control character"},
		{"address", settings.Server{URL: "$U"}, "f.yaml:3: mcpServers.s: the URL must begin with http:// or https:// and name a host"},
		{"variable", settings.Server{Env: []settings.Pair{{Name: "E", Value: "$NUL", Origin: at}}},
			"f.yaml:3: mcpServers.s.env.E: the value contains a NUL character"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.server.Name, test.server.Origin = "s", at
			_, err := x.Server(t.Context(), test.server)
			if err == nil || err.Error() != test.want {
				t.Errorf("error %v\nwant %s", err, test.want)
			}
		})
	}
}

func TestCommand(t *testing.T) {
	x := NewExpander("/p", []string{"A=a b"})
	got, err := x.Command(settings.Command{Argv: []string{"run", "$A", "$$"}})
	if diff := cmp.Diff([]string{"run", "a b", "$"}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got, err := x.Command(settings.Command{}); got != nil || err != nil {
		t.Errorf("unset command: %v, %v", got, err)
	}
	_, err = x.Command(settings.Command{Argv: []string{"$NONE"}, Origin: settings.Origin{Scope: settings.ScopeEnv, Name: "TOOLREG_X"}})
	if err == nil || !strings.HasPrefix(err.Error(), "TOOLREG_X: $NONE") {
		t.Errorf("error %v", err)
	}
}

func TestEnvironment(t *testing.T) {
	environ := []string{"PATH=/bin", "SECRET=s", "HOME=/h", "HOME=/i", "junk", "AWS_KEY=k"}
	pairs := []settings.Pair{{Name: "HOME", Value: "/mine"}, {Name: "X", Value: "1=2"}, {Name: "X", Value: "3"}}
	if diff := cmp.Diff([]string{"PATH=/bin", "HOME=/mine", "X=3"}, Environment(environ, pairs, false)); diff != "" {
		t.Errorf("the minimum (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"PATH=/bin", "SECRET=s", "HOME=/mine", "AWS_KEY=k", "X=3"}, Environment(environ, pairs, true)); diff != "" {
		t.Errorf("everything (-want +got):\n%s", diff)
	}
}

func TestHeaders(t *testing.T) {
	in := []settings.Pair{{Name: "Authorization", Value: "Bearer ${TOKEN}"}}
	x := Expander{Lookup: func(string) (string, bool) { return "s3cret", true }}
	if pairs, err := x.Pairs(t.Context(), "headers", in); err != nil || pairs[0].Value != "Bearer s3cret" {
		t.Error(pairs, err)
	}
	x.Lookup = func(string) (string, bool) { return "a\r\nX-Evil: 1", true }
	if pairs, err := x.Pairs(t.Context(), "headers", in); err == nil || strings.Contains(err.Error(), "Evil") {
		t.Error("a header was injected:", pairs, err)
	}
}

func BenchmarkExpand(b *testing.B) {
	x := NewExpander("/", []string{"A=1", "HOME=/h"})
	for b.Loop() {
		if _, err := x.Expand("${HOME}/dir/$A/${NONE:-x}"); err != nil {
			b.Fatal(err)
		}
	}
}

// ~ at the beginning of a word of a server's command is the home folder, but what comes
// from a registry is literal.
func TestHomeInCommands(t *testing.T) {
	x := NewExpander("/p", []string{"HOME=/h", "USERPROFILE=/h", "D=~/d"})
	words := []string{"~/bin/x", "~", "~/$D", "a~/b", "$D", "~other/x", "--dir=~/x"}
	for _, tt := range []struct {
		from *settings.From
		want []string
	}{
		{nil, []string{"/h/bin/x", "/h", "/h/~/d", "a~/b", "~/d", "~other/x", "--dir=~/x"}},
		{&settings.From{}, []string{"~/bin/x", "~", "~/~/d", "a~/b", "~/d", "~other/x", "--dir=~/x"}},
	} {
		for i, word := range words {
			got, err := x.Server(t.Context(), settings.Server{Command: word, Cwd: word, Args: []string{word}, From: tt.from})
			if err != nil || filepath.ToSlash(got.Command) != tt.want[i] || filepath.ToSlash(got.Cwd) != tt.want[i] || filepath.ToSlash(got.Args[0]) != tt.want[i] {
				t.Errorf("%s: %q %q %q, %v; want %s", word, got.Command, got.Cwd, got.Args, err, tt.want[i])
			}
		}
	}
	got, err := (&Expander{}).Server(t.Context(), settings.Server{Command: "~/x"})
	if err != nil || got.Command != "~/x" {
		t.Errorf("without a home: %q, %v", got.Command, err)
	}
}
