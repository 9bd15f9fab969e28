package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
	"github.com/toolreg/toolreg/internal/registry"
)

// TestFetchStaysOutOfPrivateNetworks tries private addresses in every spelling.
func TestFetchStaysOutOfPrivateNetworks(t *testing.T) {
	opts := Options{}
	opts.AllowHosts = []string{"intranet.example", "10.0.0.9", "localhost:81"}
	for _, host := range []string{
		"127.0.0.1", "127.255.255.254", "LocalHost", "0.0.0.0", "[::]", "[::1]", "[::ffff:7f00:1]", "[::ffff:10.0.0.1]",
		"10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "100.100.100.200", "169.254.169.254", "192.0.0.192", "198.18.0.1",
		"224.0.0.1", "240.0.0.1", "255.255.255.255", "168.63.129.16", "[fe80::1]", "[fc00::1]", "[fd00:ec2::254]", "[ff02::1]",
		"[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[2001::1]", "[::7f00:1]", "１２７.0.0.1", "①②⑦.0.0.1", "127。0。0。1",
	} {
		r := fetch(t, opts, "http://"+host+":80/")
		if !r.IsError || !strings.Contains(r.Text(), "fetch.allowHosts: [") {
			t.Errorf("%s: %s", host, r.Text())
		}
	}
	for _, host := range []string{"127.1", "2130706433", "0x7f000001", "0177.0.0.1"} {
		if r := fetch(t, opts, "http://"+host+"/"); !r.IsError { // the name does not exist, or its address is blocked
			t.Errorf("%s was fetched", host)
		}
	}
}

// TestRedirectIntoPrivateNetwork allows one address of this machine, which
// redirects to another.
func TestRedirectIntoPrivateNetwork(t *testing.T) {
	var reached atomic.Int32
	inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	t.Cleanup(inner.Close)
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(inner.URL, "http://"))
	for _, target := range []string{inner.URL, "http://localhost:" + port, "http://[::ffff:7f00:1]:" + port, "//127.0.0.1:" + port + "/x", "file:///etc/passwd"} {
		s, opts := site(t, func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Location", target); w.WriteHeader(302) })
		if r := fetch(t, opts, s.URL); !r.IsError || strings.Contains(r.Text(), "root:") {
			t.Errorf("%s: %s", target, r.Text())
		}
	}
	if reached.Load() > 0 {
		t.Error("the inner server was reached")
	}
}

// Each redirect is decided on as if its address was called, also if the page is cached.
func TestRedirectsAreDecided(t *testing.T) {
	s, opts := site(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/a" {
			http.Redirect(w, r, "/b?x=1", http.StatusFound)
			return
		}
		fmt.Fprint(w, "there")
	})
	opts.CacheDir = t.TempDir()
	tool := NewFetch(opts)
	for range 2 {
		for _, tt := range []struct {
			err  error
			want string
		}{{nil, "there"}, {registry.ErrDenied, "/b?x=1, which is not allowed"}, {registry.ErrNeedsConfirmation, "/b?x=1, which needs an approval of its own; to ask for it, fetch that address"}} {
			asked := ""
			call := tooltest.Call(`{"format":"text","url":"` + s.URL + `/a"}`)
			call.Admit = func(_ context.Context, params json.RawMessage, agreed bool) error {
				asked += fmt.Sprintf("%s %t", params, agreed)
				return tt.err
			}
			r, err := tool.Run(t.Context(), call)
			if err != nil || !strings.Contains(r.Text(), tt.want) || r.IsError != (tt.err != nil) {
				t.Errorf("%v: %s, %v", tt.err, r.Text(), err)
			}
			if want := `{"format":"text","url":"` + s.URL + `/b?x=1"} true`; asked != want {
				t.Errorf("asked about %s, want %s", asked, want)
			}
		}
	}
	for _, to := range []string{"http://h:81/", "https://h/", "http://www.h/"} {
		from, target := parsed(t, "http://h/"), parsed(t, to)
		var agreed bool
		call := registry.Call{Params: json.RawMessage(`{}`), Admit: func(_ context.Context, _ json.RawMessage, a bool) error { agreed = a; return nil }}
		if err := admitting(call)(t.Context(), from, target); err != nil || agreed {
			t.Errorf("%s counts as agreed to, %v", to, err)
		}
	}
}

func parsed(t *testing.T, address string) *url.URL {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestRedirects(t *testing.T) {
	s, opts := site(t, func(w http.ResponseWriter, r *http.Request) {
		var n int
		fmt.Sscanf(r.URL.Path, "/%d", &n)
		switch {
		case r.URL.Path == "/loop":
			http.Redirect(w, r, "/loop", http.StatusMovedPermanently)
		case n > 0:
			http.Redirect(w, r, fmt.Sprintf("/%d", n-1), http.StatusTemporaryRedirect)
		default:
			fmt.Fprint(w, "there")
		}
	})
	if r := fetch(t, opts, s.URL+"/5"); r.Text() != "[redirected to "+s.URL+"/0]\nthere" {
		t.Errorf("five: %s", r.Text())
	}
	for _, path := range []string{"/6", "/loop"} {
		if r := fetch(t, opts, s.URL+path); !r.IsError || !strings.Contains(r.Text(), "more than 5 redirects") {
			t.Errorf("%s: %s", path, r.Text())
		}
	}
}

// TestFetchHeadersStayAtTheirOrigin sends a credential to one server, which
// redirects to another.
func TestFetchHeadersStayAtTheirOrigin(t *testing.T) {
	var first, second []string
	other, _ := site(t, func(w http.ResponseWriter, r *http.Request) {
		second = append(second, r.Header.Get("Authorization")+r.Header.Get("X-Key"))
	})
	s, opts := site(t, func(w http.ResponseWriter, r *http.Request) {
		first = append(first, r.Header.Get("Authorization")+r.Header.Get("X-Key")+r.Host)
		http.Redirect(w, r, other.URL, http.StatusFound)
	})
	opts.AllowHosts = []string{"127.0.0.1"}
	opts.Headers = func(_ context.Context, origin string) ([]Header, error) {
		if origin != s.URL {
			return nil, nil
		}
		return []Header{{"Authorization", "Bearer s3cret"}, {"X-Key", "-k"}, {"host", "-virtual"}}, nil
	}
	if r := fetch(t, opts, s.URL); r.IsError || strings.Contains(r.Text(), "s3cret") {
		t.Fatal(r.Text())
	}
	if diff := cmp.Diff([][]string{{"Bearer s3cret-k-virtual"}, {""}}, [][]string{first, second}); diff != "" {
		t.Error(diff)
	}
	opts.Headers = func(context.Context, string) ([]Header, error) {
		return nil, fmt.Errorf("variable TOKEN is not set")
	}
	if r := fetch(t, opts, s.URL); !r.IsError || !strings.Contains(r.Text(), "TOKEN") {
		t.Error(r.Text())
	}
}

func FuzzParseAddress(f *testing.F) {
	for _, s := range []string{"http://a/", "https://[::1]:80/x?y#z", "http://１２７.0.0.1", "http://a%2fb/", "HTTP:\\\\a", "http://a:080", "http://xn--/", "http://a../", "http://１２７.0.."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, err := parseAddress(s)
		if err != nil {
			return
		}
		again, err := parseAddress(u.String())
		if err != nil || again.String() != u.String() || again.Host != u.Host {
			t.Errorf("%q gives %q, and that gives %v, %v", s, u, again, err)
		}
		if u.User != nil || u.Fragment != "" || u.Scheme != "http" && u.Scheme != "https" || strings.ContainsAny(u.Host, " /\\@") {
			t.Errorf("%q gives %q", s, u)
		}
	})
}

// TestFetchThroughProxy lets a proxy connect to any address, except to hosts
// that are known here to be private.
func TestFetchThroughProxy(t *testing.T) {
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.String())
		if r.URL.Path == "/inside" {
			http.Redirect(w, r, "http://169.254.169.254/latest", http.StatusFound)
			return
		}
		fmt.Fprint(w, "through the proxy")
	}))
	t.Cleanup(proxy.Close)
	at, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	opts := Options{}
	opts.Proxy = func(u *url.URL) (*url.URL, error) {
		if u.Hostname() == "direct.invalid" || u.Host == at.Host {
			return nil, nil
		}
		return at, nil
	}
	if r := fetch(t, opts, "http://only-the-proxy-knows.invalid/x"); r.Text() != "through the proxy" {
		t.Errorf("%+v", r)
	}
	for _, address := range []string{"http://127.0.0.1/", "http://localhost/", "http://[::ffff:7f00:1]/", "http://169.254.169.254/", "http://2130706433/", "http://0x7f.1/", "http://127.1./"} {
		if r := fetch(t, opts, address); !r.IsError || !strings.Contains(r.Text(), "fetch.allowHosts") {
			t.Errorf("%s: %s", address, r.Text())
		}
	}
	if r := fetch(t, opts, "http://name.invalid/inside"); !r.IsError || !strings.Contains(r.Text(), "another host") {
		t.Errorf("a redirect: %s", r.Text())
	}
	if r := fetch(t, opts, "http://direct.invalid/"); !r.IsError {
		t.Error("an address that is exempt from the proxy used it")
	}
	if r := fetch(t, opts, proxy.URL+"/x"); !r.IsError || !strings.Contains(r.Text(), "fetch.allowHosts") {
		t.Errorf("the proxy itself: %s", r.Text())
	}
	opts.AllowHosts = []string{"localhost"}
	if r := fetch(t, opts, "http://localhost/open"); r.Text() != "through the proxy" {
		t.Errorf("an allowed host: %s", r.Text())
	}
	if got := strings.Join(asked, " "); got != "http://only-the-proxy-knows.invalid/x http://name.invalid/inside http://localhost/open" {
		t.Errorf("the proxy was asked for %s", got)
	}
}
