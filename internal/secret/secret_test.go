package secret

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/jsonx"
)

func TestNamed(t *testing.T) {
	for _, name := range []string{
		"password", "DB_PASS", "SSHPASS", "MYSQL_PWD", "--passphrase", "STRIPE_KEY", "STRIPE_KEY_LIVE", "stripeKey", "X-Api-Key", "api_key", "clientSecret",
		"AWS_ACCESS_KEY_ID", "Authorization", "Proxy-Authorization", "GITHUB_TOKEN", "npm_auth", "X-Auth", "sig", "pat", "api%5Fkey", "-pw", "private.key", "DB_PASS2", "KEY2", "PASSWORD_2", "MYPASS_2", "stripeKey10", "--pwd1",
	} {
		if !Named(name) {
			t.Errorf("%q is not recognized as secret", name)
		}
	}
	for _, name := range []string{
		"", "-", "user", "path", "pattern", "author", "authority", "keyboard", "design", "signal", "passenger", "compassion", "hidden", "bypassed", "pathology", "2", "sha256", "x509", "port8080",
	} {
		if Named(name) {
			t.Errorf("%q is recognized as secret", name)
		}
	}
}

func TestMaskKnown(t *testing.T) {
	tests := []struct{ in, want string }{
		{"plain text", "plain text"},
		{"https://user:pw@h/x?a=1&token=abc&b=2#f", "https://***@h/x?a=1&token=***&b=2#f"},
		{"https://h/?api_key=abc&key=$KEY&sig=${SIG}", "https://h/?api_key=***&key=$KEY&sig=${SIG}"},
		{"https://u@example.com:pw@h/", "https://***@h/"},
		{"https://h:1/a@b?x=y", "https://h:1/a@b?x=y"},
		{"curl 'https://h/?token=x' and https://h/?a=1&key=y then z", "curl 'https://h/?token=***' and https://h/?a=1&key=*** then z"},
		{"from https://h/ to git+ssh://u:pw@h/?token=x", "from https://h/ to git+ssh://***@h/?token=***"},
		{"use ghp_0123456789abcdef and sk-0123456789abcdef", "use *** and ***"},
		{"sk-short", "sk-short"},
		{"skeleton-key-for-everything", "skeleton-key-for-everything"},
	}
	for _, test := range tests {
		if got := MaskKnown(test.in); got != test.want {
			t.Errorf("MaskKnown(%q) = %q, want %q", test.in, got, test.want)
		}
	}
}

func TestMask(t *testing.T) {
	for text, want := range map[string]string{
		"PASSWORD=hunter2 mysql":                                                 "PASSWORD=*** mysql",
		"mysql -u root -phunter2 -h db app":                                      "mysql -u root -p*** -h db app",
		"sudo /usr/bin/mysqldump -p'hunter 2' app > x":                           "sudo /usr/bin/mysqldump -p'***' app > x",
		"docker exec db sh -c \"mysql -phunter2\"; ls -pq":                       "docker exec db sh -c \"mysql -p***\"; ls -pq",
		"sshpass -p hunter2 ssh -p 22 me@host":                                   "sshpass -p *** ssh -p 22 me@host",
		"sshpass -phunter2 ssh x | redis-cli -a hunter2 -n":                      "sshpass -p*** ssh x | redis-cli -a *** -n",
		"mysql -p app; mongosh -p --host x":                                      "mysql -p app; mongosh -p --host x",
		"mysql -p$PW; mysql -p\"${PW}\" app":                                     "mysql -p$PW; mysql -p\"${PW}\" app",
		"docker run --name mysql -p3306:3306 mysql:8":                            "docker run --name mysql -p3306:3306 mysql:8",
		"mkdir -pv a && cp -pr b c | grep -page":                                 "mkdir -pv a && cp -pr b c | grep -page",
		"STRIPE_KEY=abc DB_PASS=def ./deploy":                                    "STRIPE_KEY=*** DB_PASS=*** ./deploy",
		"gpg --passphrase hunter2 -d x":                                          "gpg --passphrase *** -d x",
		`curl -H "Authorization: Bearer abc.def" https://h`:                      `curl -H "Authorization: Bearer ***" https://h`,
		`curl -H 'X-Api-Key: abc'`:                                               `curl -H 'X-Api-Key: ***'`,
		"tool --password hunter2 --verbose":                                      "tool --password *** --verbose",
		"tool --token=x;ls":                                                      "tool --token=***;ls",
		`{"client_secret": "s", "n": 1}`:                                         `{"client_secret": "***", "n": 1}`,
		"export A_TOKEN='x y'":                                                   "export A_TOKEN='***'",
		`curl -d "{\"password\": \"s 3\", \"n\": 1}"`:                            `curl -d "{\"password\": \"***\", \"n\": 1}"`,
		`curl -H "Cookie: a=b; c=d" x`:                                           `curl -H "Cookie: ***" x`,
		"Set-Cookie: a=b; c=d\nx":                                                "Set-Cookie: ***\nx",
		"curl -u me:pw x":                                                        "curl -u me:*** x",
		"curl --user='me:p w' x":                                                 "curl --user='me:***' x",
		"sort -u a; b:c":                                                         "sort -u a; b:c",
		"curl --oauth2-bearer abc x":                                             "curl --oauth2-bearer *** x",
		"-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----\nx": "-----BEGIN RSA PRIVATE KEY-----***-----END RSA PRIVATE KEY-----\nx",
		"-----BEGIN PRIVATE KEY-----MII":                                         "-----BEGIN PRIVATE KEY-----***",
		`PASSWORD=\x\y z`:                                                        `PASSWORD=\*** z`,
		"the password is wrong":                                                  "the password is wrong",
		"token: ":                                                                "token: ",
		"secret=":                                                                "secret=",
		"see https://token.example/x=y a=b":                                      "see https://token.example/x=y a=b",
		"é=ü token=ü":                                                            "é=ü token=***",
		"":                                                                       "",
	} {
		if got := (masker{}).text(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestArgs(t *testing.T) {
	got := Args([]string{"npx", "--api-key", "S3CRET", "--token=S3CRET", "-y", "--password", "$PW", "--pass", "env:PW", "--auth", "cmd:pass show it", "DB_PASS=S3CRET", "A_TOKEN=${A:-}", "A_TOKEN=${A:-S3CRET}", "--key", "--verbose"})
	want := []string{"npx", "--api-key", "***", "--token=***", "-y", "--password", "$PW", "--pass", "env:PW", "--auth", "cmd:pass ***", "DB_PASS=***", "A_TOKEN=${A:-}", "A_TOKEN=***", "--key", "--verbose"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHeadersInArgs(t *testing.T) {
	got := Args([]string{"npx", "mcp-remote", "https://h/mcp", "--header", "Authorization: Bearer S3CRET", "-H", "X-Api-Key:S3CRET", "-HX-Api-Key: S3CRET",
		"--header", "Authorization: Bearer ${TOKEN}", "-H", "Cookie: a=S3CRET", "-H", "Accept: text/html", "--header=Authorization:S3CRET", "key://host"})
	want := []string{"npx", "mcp-remote", "https://h/mcp", "--header", "Authorization: Bearer ***", "-H", "X-Api-Key:***", "-HX-Api-Key: ***",
		"--header", "Authorization: Bearer ${TOKEN}", "-H", "Cookie: ***", "-H", "Accept: text/html", "--header=Authorization:***", "key://host"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestValue(t *testing.T) {
	v, err := jsonx.Decode([]byte(`{"n":12345678901234567890,"password":"x","empty":"","list":[{"apiKey":7,"text":"ghp_abcdefghijklmnopqrstuvwxyz"}],
		"args":["--passphrase","hunter2","--on","-v","PASS=x"],"tokens":["a","b"],"url":"https://me:pw@h/?token=a"}`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(Value("", v))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"args":["--passphrase","***","--on","-v","PASS=***"],"empty":"","list":[{"apiKey":"***","text":"***"}],"n":12345678901234567890,"password":"***","tokens":["***","***"],"url":"https://***@h/?token=***"}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Each secret of a text in the settings is reported, even if a variable stands for it.
func TestSecretsInSettingsAreReported(t *testing.T) {
	word := func(s string, found func(string)) string { return Word("--token", s, found) }
	for _, tt := range []struct {
		mask        func(string, func(string)) string
		in, want    string
		wantSecrets []string
	}{
		{Text, "https://u:pw@h/?key=k1&x=abcdef123456&y=z", "https://***@h/?key=***&x=***&y=z", []string{"pw", "u:pw", "k1", "abcdef123456"}},
		{Text, "https://h/?key=$K", "https://h/?key=$K", []string{"$K"}},
		{Text, "the password: hunter2", "the password: hunter2", nil},
		{Line, "x --token hunter2 --key=${K} -p", "x --token *** --key=${K} -p", []string{"hunter2", "${K}"}},
		{Line, "mysql -phunter2", "mysql -p***", []string{"hunter2"}},
		{word, "$K", "$K", []string{"$K"}},
		{word, "hunter2", "***", []string{"hunter2"}},
		{word, "--x", "--x", nil},
	} {
		var secrets []string
		if got := tt.mask(tt.in, func(s string) { secrets = append(secrets, s) }); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.in, got, tt.want)
		}
		if diff := cmp.Diff(tt.wantSecrets, secrets); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.in, diff)
		}
	}
}

func TestTelling(t *testing.T) {
	for _, tt := range []struct {
		name, value string
		want        bool
	}{
		{"API_KEY", "x", true}, {"Cookie", "a=b", true}, {"X", "abcdef123456", true}, {"X", "Bearer abcdef123456", true},
		{"X", "debug", false}, {"X", "application/json", false}, {"X", "abcdefghijklm", false}, {"X", "123456789012", false},
	} {
		if Telling(tt.name, tt.value) != tt.want {
			t.Errorf("%s %s: %t", tt.name, tt.value, !tt.want)
		}
	}
}

func TestNewReplacer(t *testing.T) {
	r := NewReplacer([]string{"secret-1", "short", "secret-12", "", "Bearer a/b c+d"})
	if got, want := r.Replace("secret-12, secret-1, short, a/b c+d, a%2Fb+c%2Bd, YS9iIGMrZA=="), "***, ***, short, ***, ***, ***"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func FuzzMask(f *testing.F) {
	f.Add("https://u:p@h/?token=x --key 'y z' PASS=")
	f.Fuzz(func(t *testing.T, s string) {
		Args(strings.Fields(s))
		if masked := (masker{}).text(s); masked == "" && s != "" {
			t.Errorf("%q became empty", s)
		}
	})
}
