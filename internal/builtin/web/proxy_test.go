package web

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

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
		if u.Hostname() == "direct.invalid" {
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
	opts.AllowHosts = []string{"localhost"}
	if r := fetch(t, opts, "http://localhost/open"); r.Text() != "through the proxy" {
		t.Errorf("an allowed host: %s", r.Text())
	}
	if got := strings.Join(asked, " "); got != "http://only-the-proxy-knows.invalid/x http://name.invalid/inside http://localhost/open" {
		t.Errorf("the proxy was asked for %s", got)
	}
}
