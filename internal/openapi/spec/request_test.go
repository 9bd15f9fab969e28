package spec

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/registry"
)

// TestStyles writes values in each style of OpenAPI 3 and Swagger 2.0, as in the tables of
// the specifications.
func TestStyles(t *testing.T) {
	for _, c := range []struct{ in, keywords, value, want string }{
		{"path", ``, `"a b"`, "/x/a%20b"},
		{"path", ``, `[1,"b"]`, "/x/1,b"},
		{"path", `"explode":true`, `{"R":1,"G":2}`, "/x/R=1,G=2"},
		{"path", ``, `{"R":1,"G":2}`, "/x/R,1,G,2"},
		{"path", `"style":"label"`, `[1,2]`, "/x/.1,2"},
		{"path", `"style":"label","explode":true`, `[1,2]`, "/x/.1.2"},
		{"path", `"style":"matrix"`, `[1,2]`, "/x/;v=1,2"},
		{"path", `"style":"matrix","explode":true`, `[1,2]`, "/x/;v=1;v=2"},
		{"path", `"style":"matrix","explode":true`, `{"R":1}`, "/x/;R=1"},
		{"path", `"content":{"application/json":{"schema":{}}}`, `{"a":1}`, "/x/%7B%22a%22%3A1%7D"},
		{"query", ``, `[1,"b c"]`, "/x?v=1&v=b%20c"},
		{"query", `"explode":false`, `[1,"b,c"]`, "/x?v=1,b%2Cc"},
		{"query", ``, `{"R":1,"G":true}`, "/x?R=1&G=true"},
		{"query", `"explode":false`, `{"R":1}`, "/x?v=R,1"},
		{"query", ``, `[]`, "/x"},
		{"query", ``, `null`, "/x"},
		{"query", `"style":"spaceDelimited"`, `[1,2]`, "/x?v=1%202"},
		{"query", `"style":"pipeDelimited"`, `[1,2]`, "/x?v=1%7C2"},
		{"query", `"style":"pipeDelimited","explode":true`, `[1,2]`, "/x?v=1&v=2"},
		{"query", `"style":"deepObject","explode":true`, `{"a":{"b":1},"c":[2,{"d":3}]}`, "/x?v[a][b]=1&v[c][]=2&v[c][][d]=3"},
		{"query", `"allowReserved":true`, `"a/b?c&d=e#f+g"`, "/x?v=a/b?c%26d%3De%23f%2Bg"},
		{"query", ``, `"a/b"`, "/x?v=a%2Fb"},
		{"query", `"content":{"application/json":{"schema":{}}}`, `[1]`, "/x?v=%5B1%5D"},
		{"header", ``, `[1,"b"]`, "/x 1,b"},
		{"header", `"explode":true`, `{"R":1}`, "/x R=1"},
		{"header", `"content":{"application/json":{"schema":{}}}`, `{"a":[1]}`, `/x {"a":[1]}`},
		{"cookie", ``, `"a=b"`, "/x v=a%3Db"},
		{"formats", `"collectionFormat":"csv"`, `[1,2]`, "/x?v=1,2"},
		{"formats", `"collectionFormat":"tsv"`, `[1,2]`, "/x?v=1%092"},
		{"formats", `"collectionFormat":"pipes"`, `[1,2]`, "/x?v=1%7C2"},
		{"formats", `"collectionFormat":"multi"`, `[1,2]`, "/x?v=1&v=2"},
	} {
		version, in, route := `"openapi":"3.1.0","servers":[{"url":"https://x.example"}]`, c.in, "/x"
		if in == "formats" {
			version, in = `"swagger":"2.0","host":"x.example"`, "query"
		}
		if in == "path" {
			route = "/x/{v}"
		}
		x := operations(t, fmt.Sprintf(`{%s,"paths":{%q:{"get":{"operationId":"x","parameters":[{"name":"v","in":%q,"required":false,%s}]}}}}`,
			version, route, in, strings.TrimPrefix(c.keywords+`,"description":""`, ",")), Options{Name: "x.json"})["x"]
		r, err := x.Request([]byte(`{"v":`+c.value+`}`), nil)
		if err != nil {
			t.Errorf("%s %s %s: %v", c.in, c.keywords, c.value, err)
			continue
		}
		got := strings.TrimSpace(strings.TrimPrefix(r.URL, "https://x.example") + " " + r.Header.Get("v") + r.Header.Get("Cookie"))
		if got != c.want {
			t.Errorf("%s %s %s: %s, want %s", c.in, c.keywords, c.value, got, c.want)
		}
	}
}

// TestBodies sends bodies of each kind of media type.
func TestBodies(t *testing.T) {
	for _, c := range []struct{ content, params, kind, want string }{
		{`"application/json":{"schema":{"type":"array"}}`, `{"body":[1,{"a":null}]}`, "application/json", `[1,{"a":null}]`},
		{`"application/json":{"schema":{}}`, `{"body":null}`, "application/json", `null`},
		{`"application/vnd.x+json":{"schema":{"properties":{"a":{},"b":{}}}}`, `{"b":1,"a":2}`, "application/vnd.x+json", `{"b":1,"a":2}`},
		{`"text/plain":{},"application/json":{"schema":{"properties":{"a":{}}}}`, `{"a":1}`, "application/json", `{"a":1}`},
		{`"application/json":{"schema":{"properties":{"a":{}},"additionalProperties":true}}`, `{"a":1,"more":[2],"q":3}`, "application/json", `{"a":1,"more":[2]}`},
		{`"application/json":{"schema":{"properties":{"q":{}}}}`, `{"q":1,"body":{"q":2}}`, "application/json", `{"q":2}`},
		{`"application/json":{"schema":{"properties":{"a":{}}}}`, `{"q":1}`, "", ``},
		{`"application/x-www-form-urlencoded":{"schema":{"properties":{"a":{},"b":{},"c":{}}}}`, `{"a":["x","y z"],"b":{"k":1},"c":null}`, "application/x-www-form-urlencoded", `a=x&a=y%20z&b=%7B%22k%22%3A1%7D`},
		{`"application/x-www-form-urlencoded":{"schema":{"properties":{"a":{},"b":{}}},"encoding":{"a":{"style":"form","explode":false},"b":{"style":"deepObject","explode":true}}}`, `{"a":["x","y"],"b":{"k":1}}`, "application/x-www-form-urlencoded", `a=x,y&b[k]=1`},
		{`"application/x-www-form-urlencoded":{"schema":{"properties":{"a":{}}},"encoding":{"a":{"contentType":"application/json"}}}`, `{"a":["x"]}`, "application/x-www-form-urlencoded", `a=%5B%22x%22%5D`},
		{`"multipart/form-data":{"schema":{"properties":{"f":{"type":"array","items":{"format":"binary"}},"o":{},"n":{}}}}`, `{"f":["1\".txt","2.txt"],"o":{"k":1},"n":[1,null,"b"]}`, "multipart/form-data",
			"f 1%22.txt text/css:1\".txt|f 2.txt text/css:2.txt|o application/json:{\"k\":1}|n :1|n :b"},
		{`"multipart/form-data":{"schema":{"properties":{"f":{"format":"binary"},"j":{}}},"encoding":{"f":{"contentType":"image/png"},"j":{"contentType":"application/json"}}}`, `{"f":"a","j":[1]}`, "multipart/form-data", "f a image/png:a|j application/json:[1]"},
		{`"multipart/form-data":{"schema":{"properties":{"s":{}}},"encoding":{"s":{"style":"form","explode":true}}}`, `{"s":["a&b","c"]}`, "multipart/form-data", "s :a&b|s :c"},
		{`"text/plain":{"schema":{}}`, `{"body":"a\nb"}`, "text/plain", "a\nb"},
		{`"text/csv":{"schema":{}}`, `{"body":"a"}`, "text/csv", "a"},
		{`"application/octet-stream":{"schema":{}}`, `{"body":"a.bin"}`, "application/octet-stream", "a.bin"},
		{`"image/*":{"schema":{}}`, `{"body":"a.bin"}`, "text/css", "a.bin"},
		{`"image/png":{"schema":{"type":"string","format":"byte"}}`, `{"body":"a.bin"}`, "image/png", "YS5iaW4="},
		{`"*/*":{"schema":{"format":"binary"}}`, `{"body":"a.bin"}`, "application/octet-stream", "a.bin"},
		{`"*/*":{"schema":{}}`, `{"body":1}`, "application/json", "1"},
	} {
		x := operations(t, fmt.Sprintf(`{"openapi":"3.0.0","servers":[{"url":"https://x.example"}],"paths":{"/x":{"post":{"operationId":"x","parameters":[{"name":"q","in":"query"}],"requestBody":{"content":{%s}}}}}}`, c.content), Options{Name: "x.json"})["x"]
		r, err := x.Request([]byte(c.params), func(_, value string) (File, error) { return File{value, "text/css", []byte(value)}, nil })
		if err != nil {
			t.Errorf("%s %s: %v", c.content, c.params, err)
			continue
		}
		kind, boundary, _ := strings.Cut(r.Header.Get("Content-Type"), "; boundary=")
		body := string(r.Body)
		if boundary != "" {
			body = shortened(body, boundary)
		}
		if diff := cmp.Diff([2]string{c.kind, c.want}, [2]string{kind, body}); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", c.content, c.params, diff)
		}
	}
}

// shortened returns the parts of a multipart body as "name file type:content".
func shortened(body, boundary string) string {
	var out []string
	for _, part := range strings.Split(strings.TrimSuffix(body, "--"+boundary+"--\r\n"), "--"+boundary+"\r\n")[1:] {
		head, content, _ := strings.Cut(part, "\r\n\r\n")
		head = strings.NewReplacer("Content-Disposition: form-data; name=\"", "", "\"; filename=\"", " ", "\"\r\nContent-Type: ", " ", "\"", " ").Replace(head)
		out = append(out, head+":"+strings.TrimSuffix(content, "\r\n"))
	}
	return strings.Join(out, "|")
}

// What is wrong with params names the param.
func TestWrongParams(t *testing.T) {
	all := operations(t, `{"openapi":"3.0.0","servers":[{"url":"https://x.example"}],"paths":{"/{id}/b":{"put":{"operationId":"x","parameters":[{"name":"id","in":"path"},{"name":"X-H","in":"header"}],
		"requestBody":{"content":{"application/octet-stream":{}}}}}}}`, Options{Name: "x.json"})
	for params, pointer := range map[string]string{`{}`: "/id", `{"id":".."}`: "/id", `{"id":[]}`: "/id", `{"id":"1","X-H":"a\nb"}`: "/X-H", `{"id":"1","body":7}`: "/body"} {
		_, err := all["x"].Request([]byte(params), func(string, string) (File, error) { return File{}, nil })
		wrong, ok := errors.AsType[*registry.ArgsError](err)
		if !ok || len(wrong.Violations) != 1 || wrong.Violations[0].Pointer != pointer {
			t.Errorf("%s: %v, want a violation at %s", params, err, pointer)
		}
	}
}
