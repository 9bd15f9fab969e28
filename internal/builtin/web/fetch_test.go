package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
	"github.com/toolreg/toolreg/internal/registry"
)

// site starts a web server on this machine, with options that allow its
// address.
func site(t testing.TB, handler http.HandlerFunc) (*httptest.Server, Options) {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	opts := Options{}
	opts.AllowHosts = []string{strings.TrimPrefix(s.URL, "http://")}
	return s, opts
}

// serving starts a server with the given pages, by path: content type and body.
func serving(t testing.TB, pages map[string][2]string) (*httptest.Server, Options) {
	t.Helper()
	return site(t, func(w http.ResponseWriter, r *http.Request) {
		p, ok := pages[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		if p[0] != "" {
			w.Header().Set("Content-Type", p[0])
		}
		io.WriteString(w, p[1])
	})
}

func fetch(t testing.TB, opts Options, address string, more ...string) registry.Result {
	t.Helper()
	return run(t, opts, fmt.Sprintf(`{"url":%s%s}`, tooltest.Quoted(address), strings.Join(more, "")))
}

const sampleHTML = `<!doctype html><html><head><title>T</title><style>p{}</style><script>evil()</script></head><body>
<h1>Head &amp; shoulders</h1><p>One <b>bold</b> <a href="/a?b=1">link</a>,
two&nbsp;<del>gone</del>.</p><ul><li>x<li>y</ul>
<table><tr><th>A</th><th>B</th></tr><tr><td>1</td><td>2|3</td></tr></table>
<pre><code>a  b
c</code></pre><img src="data:image/png;base64,AAAA" alt="pic"><a href="javascript:evil()">no</a></body></html>`

func TestFetchFormats(t *testing.T) {
	s, opts := serving(t, map[string][2]string{
		"/html":    {"text/html; charset=utf-8", sampleHTML},
		"/base":    {"text/html", `<base href="/deep/er/"><a href="x">x</a> <a href="#y">y</a>`},
		"/latin":   {"text/html; charset=iso-8859-1", "<p>caf\xe9</p>"},
		"/meta":    {"text/html", `<meta charset="shift_jis"><p>` + "\x93\xfa\x96\x7b" + `</p>`},
		"/utf8":    {"text/html", "<p>" + strings.Repeat(" ", 2000) + "日本</p>"},
		"/plain":   {"text/plain; charset=windows-1252", "\x93quoted\x94"},
		"/guess":   {"text/plain", "caf\xe9"},
		"/bom":     {"text/plain", "\xef\xbb\xbfx"},
		"/utf16":   {"text/plain; charset=utf-16le", "h\x00i\x00"},
		"/mark":    {"text/plain", "\xff\xfeh\x00i\x00"},
		"/json":    {"application/json", `{"b":12345678901234567890,"a":[]}`},
		"/broken":  {"application/json", `{"b":`},
		"/problem": {"application/problem+json; charset=utf-8", `{"a":1}`},
		"/svg":     {"image/svg+xml", `<svg/>`},
		"/xml":     {"application/rss+xml", `<?xml version="1.0" encoding='windows-1251'?><rss>` + "\xcf</rss>"},
		"/yaml":    {"application/yaml", "a: b"},
		"/none":    {"", "just words"},
		"/bytes":   {"application/octet-stream", "just words"},
		"/empty":   {"text/html", ""},
		"/lists":   {"text/html", "<ul><li>a</ul><ol><li>b</ol>"},
	})
	for _, c := range []struct{ path, format, want string }{
		{"/html", "", "[title: T]\n# Head & shoulders\n\nOne **bold** [link](" + s.URL + "/a?b=1), two\u00a0~~gone~~.\n\n- x\n- y\n\n| A | B |\n|---|---|\n| 1 | 2\\|3 |\n\n```\na  b\nc\n```\n\nno"},
		{"/html", "text", "[title: T]\nHead & shoulders\n\nOne bold link, two\u00a0gone.\n\n- x\n- y\n\nA B\n1 2|3\n\na  b\nc\n\nno"},
		{"/html", "raw", sampleHTML},
		{"/base", "", "[x](" + s.URL + "/deep/er/x) [y](#y)"},
		{"/latin", "", "café"},
		{"/meta", "", "日本"},
		{"/utf8", "", "日本"},
		{"/plain", "", "“quoted”"},
		{"/guess", "", "café"},
		{"/bom", "", "x"},
		{"/utf16", "", "hi"},
		{"/mark", "", "hi"},
		{"/json", "", "{\n  \"b\": 12345678901234567890,\n  \"a\": []\n}"},
		{"/json", "raw", `{"b":12345678901234567890,"a":[]}`},
		{"/broken", "", `{"b":`},
		{"/problem", "text", "{\n  \"a\": 1\n}"},
		{"/svg", "", "<svg/>"},
		{"/xml", "", `<?xml version="1.0" encoding='windows-1251'?><rss>П</rss>`},
		{"/yaml", "", "a: b"},
		{"/none", "", "just words"},
		{"/bytes", "", "just words"},
		{"/empty", "", "[the page is empty]"},
		{"/lists", "", "- a\n\n1. b"},
	} {
		r := fetch(t, opts, s.URL+c.path, fmt.Sprintf(`,"format":%q`, orMarkdown(c.format)))
		if diff := cmp.Diff(c.want, r.Text()); diff != "" || r.IsError {
			t.Errorf("%s as %s:\n%s", c.path, c.format, diff)
		}
	}
	for what, markdown := range map[string]bool{"/html markdown": true, "/html text": false, "/html raw": false, "/plain markdown": false, "/yaml markdown": false} {
		path, format, _ := strings.Cut(what, " ")
		if r := fetch(t, opts, s.URL+path, fmt.Sprintf(`,"format":%q`, format)); r.Display.Plain == markdown {
			t.Errorf("%s: shown as Markdown: %t", what, !r.Display.Plain)
		}
	}
}

func orMarkdown(format string) string {
	if format == "" {
		return "markdown"
	}
	return format
}

func TestFetchMedia(t *testing.T) {
	png := "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
	s, opts := serving(t, map[string][2]string{
		"/png":   {"image/png", png},
		"/wrong": {"image/jpeg", png},
		"/audio": {"audio/mpeg", "ID3\x03"},
		"/pdf":   {"application/pdf", "%PDF-1.7\x00"},
		"/zip":   {"application/zip", "PK\x03\x04\x00\x00"},
		"/fake":  {"text/plain", "\x00\x01\x02\x03\x04\x05\x06\x07"},
	})
	for path, want := range map[string]registry.Content{
		"/png":   {Type: registry.ContentImage, MIMEType: "image/png", Data: []byte(png)},
		"/wrong": {Type: registry.ContentImage, MIMEType: "image/png", Data: []byte(png)},
		"/audio": {Type: registry.ContentAudio, MIMEType: "audio/mpeg", Data: []byte("ID3\x03")},
		"/pdf":   {Type: registry.ContentResource, MIMEType: "application/pdf", Data: []byte("%PDF-1.7\x00"), URI: s.URL + "/pdf"},
	} {
		r := fetch(t, opts, s.URL+path)
		if diff := cmp.Diff([]registry.Content{want}, r.Content); diff != "" || r.Display.Text == "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
	for _, path := range []string{"/zip", "/fake"} {
		if r := fetch(t, opts, s.URL+path); !r.IsError || !strings.Contains(r.Text(), s.URL+path+" is binary") || !strings.Contains(r.Text(), "format: raw") {
			t.Errorf("%s: %s", path, r.Text())
		}
	}
	if r := fetch(t, opts, s.URL+"/zip", `,"format":"raw"`); len(r.Content) != 1 || string(r.Content[0].Data) != "PK\x03\x04\x00\x00" {
		t.Errorf("raw: %+v", r)
	}
	opts.MaxBytes = 10
	if r := fetch(t, opts, s.URL+"/png"); !r.IsError || !strings.Contains(r.Text(), "larger than the limit of 10 B") {
		t.Errorf("half an image: %+v", r)
	}
}

func TestFetchContinuesAtOffset(t *testing.T) {
	text := strings.Repeat("äöü", 10)
	s, opts := serving(t, map[string][2]string{"/": {"text/plain; charset=utf-8", text}})
	var got strings.Builder
	for _, c := range []struct {
		offset int
		note   string
	}{{0, "[characters 0 to 12 of 30; continue with offset 13]\n"}, {13, "[characters 13 to 25 of 30; continue with offset 26]\n"}, {26, "[characters 26 to 29 of 30]\n"}} {
		r := fetch(t, opts, s.URL, fmt.Sprintf(`,"limit":13,"offset":%d`, c.offset))
		part, found := strings.CutPrefix(r.Text(), c.note)
		if !found || r.Truncated != (c.offset < 26) {
			t.Errorf("offset %d: %q, truncated %v", c.offset, r.Text(), r.Truncated)
		}
		got.WriteString(part)
	}
	if got.String() != text {
		t.Errorf("the parts give %q", got.String())
	}
	if r := fetch(t, opts, s.URL, `,"offset":30`); !r.IsError || !strings.Contains(r.Text(), "has 30 characters") {
		t.Errorf("past the end: %s", r.Text())
	}
	if r := fetch(t, opts, s.URL, `,"limit":30`); r.Text() != text || r.Truncated {
		t.Errorf("exactly all: %q", r.Text())
	}
}

func TestFetchParams(t *testing.T) {
	opts := Options{}
	tool := NewFetch(opts)
	for params, want := range map[string]string{
		`{"url":"example.com"}`:                                "has no scheme",
		`{"url":"localhost:80/x"}`:                             "has no scheme",
		`{"url":"127.0.0.1:8080"}`:                             "has no scheme",
		`{"url":"mailto:a@b.example"}`:                         `begins with "mailto:"`,
		`{"url":"file:///etc/passwd"}`:                         "only http and https",
		`{"url":"FILE:///etc/passwd"}`:                         "only http and https",
		`{"url":"http://"}`:                                    "has no host",
		`{"url":"http://:80/"}`:                                "has no host",
		`{"url":"https://u:pw@example.com"}`:                   "user or a password",
		`{"url":"https://u@example.com"}`:                      "user or a password",
		`{"url":"http://a b/"}`:                                "space or a control",
		`{"url":"http://a/\r\nX: y"}`:                          "space or a control",
		`{"url":"http://a:99999/"}`:                            "ports range from",
		`{"url":"http://a:0/"}`:                                "ports range from",
		`{"url":"http://[fe80::1%25eth0]/"}`:                   "zone",
		`{"url":"http://exa<mple/"}`:                           "invalid host name",
		`{"url":"http://` + strings.Repeat("a", 9000):          "unexpected end",
		`{"url":"http://a/` + strings.Repeat("a", 9000) + `"}`: "is longer than",
	} {
		err := tool.Check(t.Context(), tooltest.Call(params))
		var invalid *registry.ArgsError
		if !errors.As(err, &invalid) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "pw") {
			t.Errorf("%.60s: %v, want %q", params, err, want)
		}
	}
	subject, err := tool.Subject(tooltest.Call(`{"url":"HTTPS://EXAMPLE.com.:443/A?b=C#frag","prompt":"why?"}`))
	if err != nil || !cmp.Equal(subject.URLs, []string{"https://example.com/A?b=C"}) {
		t.Error(subject, err)
	}
	if subject, _ := tool.Subject(tooltest.Call(`{"url":"http://１２７.0.0.1/"}`)); !cmp.Equal(subject.URLs, []string{"http://127.0.0.1/"}) {
		t.Errorf("full-width digits hide the host: %q", subject.URLs)
	}
	p, err := tool.Preview(t.Context(), tooltest.Call(`{"url":"https://bücher.example/x","prompt":"why?"}`))
	want := registry.Preview{Kind: registry.PreviewInfo, Title: "Fetch a web page", Prompt: "why?", URLs: []string{"https://xn--bcher-kva.example/x"}}
	if diff := cmp.Diff(want, p); diff != "" || err != nil {
		t.Error(diff, err)
	}
	allowing := NewFetch(Options{AllowHosts: []string{"10.0.0.1:80", "localhost"}})
	for _, url := range []string{"http://10.0.0.1/", "http://localhost:3000/", "http://[::1]/", "https://10.0.0.1/"} {
		_, err := tool.Preview(t.Context(), tooltest.Call(`{"url":"`+url+`"}`))
		if _, fails := errors.AsType[*registry.FailedError](err); !fails {
			t.Errorf("a call for %s, which can only fail, is asked about: %v", url, err)
		}
		allowed := url == "http://10.0.0.1/" || strings.Contains(url, "localhost")
		if _, err := allowing.Preview(t.Context(), tooltest.Call(`{"url":"`+url+`"}`)); (err == nil) != allowed {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestFetchStatus(t *testing.T) {
	s, opts := site(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/busy":
			w.Header().Set("Retry-After", "86400")
			http.Error(w, strings.Repeat("x", 5000), http.StatusServiceUnavailable)
		case "/closed":
			w.Header().Set("Retry-After", "Fri, 31 Dec 1999 23:59:59 GMT")
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/binary":
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, "\x00\x01")
		case "/secret":
			w.WriteHeader(http.StatusUnauthorized)
		case "/nowhere":
			w.WriteHeader(http.StatusFound) // without Location
		default:
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, "<h1>Gone fishing</h1>")
		}
	})
	for path, want := range map[string]string{
		"/":        s.URL + "/ answered 404 Not Found; check the address\n\n# Gone fishing",
		"/binary":  s.URL + "/binary answered 404 Not Found; check the address",
		"/closed":  s.URL + "/closed answered 503 Service Unavailable; try again after Fri, 31 Dec 1999 23:59:59 GMT",
		"/secret":  s.URL + "/secret answered 401 Unauthorized; use the setting fetch.headers to send credentials",
		"/nowhere": s.URL + "/nowhere answered 302 Found",
	} {
		r := fetch(t, opts, s.URL+path)
		if r.Text() != want || !r.IsError || r.ErrorCategory != registry.ErrorExecution {
			t.Errorf("%s: %q (%v)", path, r.Text(), r.IsError)
		}
	}
	r := fetch(t, opts, s.URL+"/busy")
	if !strings.Contains(r.Text(), "503 Service Unavailable; try again after 86400 seconds\n") || len(r.Text()) > 3000 {
		t.Errorf("busy: %d bytes: %.200s", len(r.Text()), r.Text())
	}
}

func TestFetchFailures(t *testing.T) {
	s, opts := site(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/coding":
			w.Header().Set("Content-Encoding", "br")
		case "/broken":
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "only this")
		case "/headers":
			for i := range 300 {
				w.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat("x", 1000))
			}
		case "/close":
			panic(http.ErrAbortHandler)
		}
	})
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	opts.AllowHosts = append(opts.AllowHosts, strings.TrimPrefix(secure.URL, "https://"), "127.0.0.1:1")
	for address, want := range map[string]string{
		s.URL + "/coding":       `the content coding "br"`,
		s.URL + "/broken":       "closed the connection early",
		s.URL + "/close":        "closed the connection early",
		s.URL + "/headers":      "response headers exceeded",
		secure.URL:              "SSL_CERT_FILE",
		"http://127.0.0.1:1/x":  "connection refused",
		"https://" + s.URL[7:]:  "does not speak TLS",
		"http://host.invalid/x": `"host.invalid"`,
	} {
		r := fetch(t, opts, address)
		if !r.IsError || !strings.Contains(r.Text(), want) || !strings.HasPrefix(r.Text(), "fetching ") {
			t.Errorf("%s: %q, want %q", address, r.Text(), want)
		}
	}
}

func TestFetchLimitsWhatItReads(t *testing.T) {
	s, opts := site(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		out := io.Writer(w)
		if r.URL.Path == "/bomb" {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			defer z.Close()
			out = z
		}
		chunk := bytes.Repeat([]byte("0"), 64<<10)
		for r.Context().Err() == nil { // forever
			if _, err := out.Write(chunk); err != nil {
				return
			}
		}
	})
	opts.MaxBytes = 1 << 20
	for _, path := range []string{"/bomb", "/endless"} {
		r := fetch(t, opts, s.URL+path)
		if r.IsError || !r.Truncated || !strings.HasPrefix(r.Text(), "[the page is larger than 1.0 MiB; the rest of it was not read]\n[characters 0 to 99999 of 1048576; continue with offset 100000]\n000") {
			t.Errorf("%s: %.300s", path, r.Text())
		}
	}
}

func TestFetchStopsAtTimeLimit(t *testing.T) {
	s, opts := site(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/drip" {
			io.WriteString(w, "x")
			w.(http.Flusher).Flush()
		}
		if r.URL.Path != "/page" {
			<-r.Context().Done()
		}
	})
	opts.Timeout = 1
	call := tooltest.Call(`{"url":` + tooltest.Quoted(s.URL+"/page") + `}`)
	call.Limit = time.Minute
	if r, err := NewFetch(opts).Run(t.Context(), call); err != nil || r.IsError {
		t.Errorf("the limit of the settings holds although the call has one: %+v, %v", r, err)
	}
	opts.Timeout = 100 * time.Millisecond
	for _, path := range []string{"/drip", "/silent"} {
		r := fetch(t, opts, s.URL+path)
		if r.ErrorCategory != registry.ErrorTimeout || !strings.Contains(r.Text(), "fetch.timeout") {
			t.Errorf("%s: %+v", path, r)
		}
	}
	opts.Timeout = 0
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	tool := NewFetch(opts)
	go cancel(enough)
	if _, err := tool.Run(ctx, tooltest.Call(fmt.Sprintf(`{"url":%q}`, s.URL))); !errors.Is(err, enough) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestFetchRequestsOnlyThePage(t *testing.T) {
	var got http.Header
	s, opts := site(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Clone()
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
		if r.URL.Path == "/" {
			http.Redirect(w, r, "/next", http.StatusFound)
		}
	})
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	opts.Version = "1.2.3"
	if r := fetch(t, opts, s.URL+"/"); r.IsError {
		t.Fatal(r.Text())
	}
	if got.Get("Cookie") != "" || got.Get("Authorization") != "" || got.Get("Referer") != "" || got.Get("User-Agent") != "toolreg/1.2.3" || !strings.Contains(got.Get("Accept"), "text/markdown") {
		t.Errorf("headers: %v", got)
	}
}

func TestRedirectsStayAtTheHost(t *testing.T) {
	for _, c := range []struct {
		from, to string
		want     bool
	}{
		{"example.com", "example.com", true}, {"example.com", "WWW.example.com.", true}, {"www.example.com", "example.com", true},
		{"www.example.com", "docs.example.com", true}, {"github.com", "codeload.github.com", true},
		{"example.com", "evil.com", false}, {"example.com", "evilexample.com", false}, {"docs.example.com", "example.com", false},
		{"example.com", "example.com.evil.com", false}, {"com", "example.com", false}, {"localhost", "a.localhost", false},
		{"127.0.0.1", "127.0.0.1", true}, {"127.0.0.1", "localhost", false}, {"::1", "0:0:0:0:0:0:0:1", true}, {"1.2.3.4", "9.1.2.3.4", false},
	} {
		if got := staysAt(c.from, c.to); got != c.want {
			t.Errorf("%s to %s: %v", c.from, c.to, got)
		}
	}
}

func TestDowngradeIsNotFollowed(t *testing.T) {
	from := &url.URL{Scheme: "https", Host: "example.com", Path: "/"}
	for location, want := range map[string]string{
		"http://example.com/":        "from https to plain http",
		"https://example.org/a?b":    "to follow it, fetch https://example.org/a?b",
		"file:///etc/passwd":         "only http and https",
		"gopher://example.com/":      "only http and https",
		"https://u:p@example.com/":   "user or a password",
		"https://exam ple.com/":      "invalid address",
		"javascript:alert(document)": "only http and https",
	} {
		resp := &http.Response{StatusCode: 302, Header: http.Header{"Location": {location}}}
		if next, err := redirected(from, resp); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", location, next, err)
		}
	}
	next, err := redirected(from, &http.Response{StatusCode: 308, Header: http.Header{"Location": {"../a#b"}}})
	if err != nil || next.String() != "https://example.com/a" {
		t.Error(next, err)
	}
}

func TestFetchProcessor(t *testing.T) {
	s, opts := serving(t, map[string][2]string{
		"/":    {"text/html", "<h1>Title</h1>"},
		"/png": {"image/png", "\x89PNG\r\n\x1a\n"},
	})
	opts.ProcessorEnv = []string{"PATH=" + os.Getenv("PATH")}
	opts.ProcessorDir = t.TempDir()
	ask := func(path string, argv ...string) (string, bool) {
		t.Helper()
		opts.Processor = func() ([]string, error) { return argv, nil }
		r := fetch(t, opts, s.URL+path, `,"prompt":"what \"is\" it?"`)
		return r.Text(), r.IsError
	}
	if text, failed := ask("/", "cat"); failed || text != `{"url":"`+s.URL+`/","prompt":"what \"is\" it?","content":"# Title"}` {
		t.Errorf("input of the program: %s", text)
	}
	if text, failed := ask("/", "pwd"); failed || !strings.HasSuffix(text, opts.ProcessorDir) {
		t.Errorf("folder of the program: %s", text)
	}
	if text, failed := ask("/", "sh", "-c", "echo why >&2; echo answer; exit 3"); !failed || !strings.Contains(text, "exit code 3\nwhy\n") || strings.Contains(text, "answer") {
		t.Errorf("failing: %s", text)
	}
	if text, failed := ask("/", "no-such-program"); !failed || !strings.Contains(text, `"no-such-program"`) {
		t.Errorf("missing: %s", text)
	}
	if text, failed := ask("/", "sh", "-c", "kill -9 $$"); !failed || !strings.Contains(text, "SIGKILL") {
		t.Errorf("killed: %s", text)
	}
	if text, failed := ask("/"); failed || !strings.HasPrefix(text, "[the setting fetch.processor is not set") || !strings.HasSuffix(text, "# Title") {
		t.Errorf("without a program: %s", text)
	}
	if text, failed := ask("/png", "cat"); failed || !strings.Contains(text, "is not text, so the prompt was not applied") {
		t.Errorf("an image: %s", text)
	}
	if text, failed := ask("/missing", "cat"); !failed || strings.Contains(text, "prompt") {
		t.Errorf("a missing page: %s", text)
	}
	opts.Processor = func() ([]string, error) { return nil, errors.New("variable X is not set") }
	if r := fetch(t, opts, s.URL, `,"prompt":"x"`); !r.IsError || !strings.Contains(r.Text(), "variable X") {
		t.Error(r.Text())
	}
}

func TestFetchProcessorIsCancelled(t *testing.T) {
	s, opts := serving(t, map[string][2]string{"/": {"text/plain", "x"}})
	opts.ProcessorEnv = []string{"PATH=" + os.Getenv("PATH")}
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	opts.Processor = func() ([]string, error) {
		go cancel(enough)
		return []string{"sleep", "600"}, nil
	}
	tool := NewFetch(opts)
	if _, err := tool.Run(ctx, tooltest.Call(`{"url":"`+s.URL+`","prompt":"x"}`)); !errors.Is(err, enough) {
		t.Errorf("%v", err)
	}
}
