package openapi

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/webaddr"
)

// apiAt returns an API whose document is at spec and whose requests go to base.
func apiAt(spec, base string) settings.API {
	return settings.API{Server: settings.Server{Name: "test", URL: base}, Spec: spec}
}

func testClient(t *testing.T, api settings.API, o Options) *client {
	t.Helper()
	c, err := newClient(api, &o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAddressesThatAreNoAPI(t *testing.T) {
	for _, address := range []string{"ftp://a.example/x", "http:///x", "http://user@a.example/x", "http://a.example/x#y", "http://[::1/x", "://a"} {
		for _, api := range []settings.API{apiAt(address, ""), apiAt("api.json", address)} {
			if _, err := newClient(api, &Options{}); err == nil {
				t.Errorf("%q is the address of an API", address)
			} else if strings.Contains(err.Error(), "user@") {
				t.Errorf("the error repeats the user: %v", err)
			}
		}
	}
}

// Only what the settings name may be on this machine or a private network, with the port
// that they name.
func TestAddressesThatAreReached(t *testing.T) {
	served := func() *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		t.Cleanup(s.Close)
		return s
	}
	api, document, other := served(), served(), served()
	c := testClient(t, apiAt(document.URL, api.URL), Options{})
	for _, address := range []string{api.URL, document.URL} {
		if _, err := c.getDocument(t.Context(), address, http.Header{}); err != nil {
			t.Errorf("%s, which the settings name: %v", address, err)
		}
	}
	for _, address := range []string{other.URL, strings.Replace(api.URL, "127.0.0.1", "127.0.0.2", 1), "http://169.254.169.254/latest/meta-data", "http://[::ffff:127.0.0.1]:1", "http://10.0.0.1"} {
		_, err := c.getDocument(t.Context(), address, http.Header{})
		if blocked, ok := errors.AsType[*webaddr.BlockedError](err); !ok {
			t.Errorf("%s: %v", address, err)
		} else if !strings.Contains(blocked.Error(), "fetch.allowHosts") {
			t.Errorf("%s: the error does not say what allows it: %v", address, blocked)
		}
	}
	host := strings.TrimPrefix(other.URL, "http://")
	c = testClient(t, apiAt(document.URL, api.URL), Options{AllowHosts: []string{host}})
	if _, err := c.getDocument(t.Context(), other.URL, http.Header{}); err != nil {
		t.Errorf("a host of fetch.allowHosts: %v", err)
	}
}

// A proxy reaches no address that would not be reached without it.
func TestAddressesThatAProxyReaches(t *testing.T) {
	proxy := &url.URL{Scheme: "http", Host: "127.0.0.9:3128"}
	c := testClient(t, apiAt("http://10.0.0.7/api.json", ""), Options{Proxy: func(*url.URL) (*url.URL, error) { return proxy, nil }})
	for address, reached := range map[string]bool{"http://10.0.0.7/x": true, "http://10.0.0.8/x": false, "http://169.254.169.254/x": false, "http://127.0.0.9:3128/x": false} {
		r := httptest.NewRequest(http.MethodGet, address, nil)
		got, err := c.transport.Proxy(r)
		if got != proxy || (err == nil) != reached {
			t.Errorf("%s: proxy %v, error %v", address, got, err)
		}
	}
}

func TestRedirects(t *testing.T) {
	c := testClient(t, settings.API{Server: settings.Server{URL: "https://a.example"}, Spec: "api.json", Auth: []settings.Auth{{Bearer: "secret-token"}}},
		Options{Secrets: func() []string { return []string{"secret-token"} }})
	for _, tt := range []struct {
		method, from, to string
		before           int
		err              string
		header           bool // of the call is sent
	}{
		{"GET", "https://a.example/1", "https://a.example/2", 0, "", true},
		{"HEAD", "https://a.example/1", "https://a.example:443/2", 0, "", true},
		{"GET", "https://a.example/1", "https://b.example/2", 0, "", false},
		{"GET", "https://a.example/1", "https://a.example:444/2", 0, "", false},
		{"POST", "https://a.example/1", "https://a.example/2", 0, http.ErrUseLastResponse.Error(), true},
		{"DELETE", "https://a.example/1", "https://a.example/2", 0, http.ErrUseLastResponse.Error(), true},
		{"GET", "https://a.example/1", "http://a.example/2", 0, "from https to http", true},
		{"GET", "http://a.example/1", "https://a.example/2", 0, "", false},
		{"GET", "https://a.example/1", "ftp://a.example/2", 0, "not http or https", true},
		{"GET", "https://a.example/1", "https://a.example/2", maxRedirects, "more than 5 redirects", true},
		{"GET", "https://a.example/1", "https://b.example/?t=secret-token", 0, "with credentials in the address", true},
		{"GET", "https://a.example/1", "https://a:b@b.example/", 0, "with credentials in the address", true},
	} {
		first := httptest.NewRequest(tt.method, tt.from, nil)
		first.Header.Set("Accept", "text/plain")
		via := []*http.Request{first}
		for range tt.before {
			via = append(via, first)
		}
		next := httptest.NewRequest(tt.method, tt.to, nil)
		next.Header = http.Header{"X-Note": {"mine"}, "Accept": {"text/plain"}}
		err := c.checkRedirect(next, via)
		if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
			t.Errorf("%s %s to %s: %v, want %q", tt.method, tt.from, tt.to, err, tt.err)
		}
		if got := next.Header.Get("X-Note") != ""; err == nil && got != tt.header || next.Header.Get("Accept") == "" {
			t.Errorf("%s %s to %s: sends %v", tt.method, tt.from, tt.to, next.Header)
		}
	}
}

// What a server repeats is masked as a whole and in the parts and forms in which it was sent.
func TestRepeatedCredentials(t *testing.T) {
	c := testClient(t, settings.API{Server: settings.Server{URL: "https://a.example", Headers: []settings.Pair{{Name: "Authorization", Value: "Token of/header"}}}, Spec: "api.json",
		Auth: []settings.Auth{{APIKey: &settings.APIKey{In: "query", Name: "k", Value: `a/key"&é`}}}},
		Options{Secrets: func() []string { return []string{"Token of/header", `a/key"&é`} }})
	for _, tt := range []struct{ repeated, want string }{
		{"Token of/header", "***"}, {"of/header", "***"}, {"of%2Fheader", "***"}, {"b2YvaGVhZGVy", "***"},
		{`{"a": "a\/key\u0022&\u00e9"}`, `{"a":"***"}`}, {`{"a/key\"&é": [{"of\/header": 1}, "\n"]}`, `{"***":[{"***":1},"\n"]}`},
		{`{"a": "a/key"}`, `{"a": "a/key"}`}, {`not JSON: \ of/header`, `not JSON: \ ***`}, {`{"a": 1.0, "b": "\n"}`, `{"a": 1.0, "b": "\n"}`},
	} {
		if got := string(c.hideIn([]byte(tt.repeated))); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.repeated, got, tt.want)
		}
	}
	s := New(Options{})
	s.client = c
	if got := s.fail(errors.New("403 no of/header")).Error(); !strings.HasSuffix(got, "403 no ***") {
		t.Errorf("the error is %q", got)
	}
	for i := range maxTokens + 1 {
		c.sends("token-" + strings.Repeat("x", i+1) + "-end")
	}
	for text, want := range map[string]string{"token-xx-end": "***", "token-xxxxx-end": "***", "of/header": "***", "token-": "token-"} {
		if got := c.hide(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
