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
		{"query", `"style":"deepObject","explode":true`, `{"a":{"b":1},"c":[2,{"d":3}]}`, "/x?v[a][b]=1&v[c][0]=2&v[c][1][d]=3"},
		{"query", `"style":"deepObject"`, `{"a":[1,2],"b":null,"c":{"d":null},"e":[[3]]}`, "/x?v[a][]=1&v[a][]=2&v[e][0][]=3"},
		{"query", ``, `{"R":1,"G":null}`, "/x?R=1"},
		{"query", ``, `[1,null,2]`, "/x?v=1&v=2"},
		{"query", `"explode":false`, `[null,{"a":null}]`, "/x?v=%7B%22a%22%3Anull%7D"},
		{"path", ``, `{"R":1,"G":null}`, "/x/R,1"},
		{"header", `"explode":true`, `{"R":1,"G":null}`, "/x R=1"},
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
		{"formats", `"collectionFormat":"ssv"`, `["a b",2]`, "/x?v=a%20b%202"},
		{"formats header", `"collectionFormat":"pipes"`, `["a",2]`, "/x a|2"},
		{"formats header", `"collectionFormat":"ssv"`, `["a",2]`, "/x a 2"},
		{"formats header", ``, `["a",2]`, "/x a,2"},
		{"formats path", `"collectionFormat":"pipes"`, `["a/",2]`, "/x/a%2F%7C2"},
		{"header", `"style":"pipeDelimited"`, `[1,2]`, "/x 1|2"},
		{"cookie", ``, `[1,2]`, "/x v=1; v=2"},
		{"cookie", `"explode":false`, `[1,2]`, "/x v=1,2"},
		{"query", `"style":"deepObject"`, `["a&b"]`, "/x?v[]=a%26b"},
	} {
		version, in, route := `"openapi":"3.1.0","servers":[{"url":"https://x.example"}]`, c.in, "/x"
		if rest, ok := strings.CutPrefix(in, "formats"); ok {
			version, in = `"swagger":"2.0","host":"x.example"`, placeOf(rest)
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
		{`"multipart/form-data":{"schema":{"properties":{"s":{}}},"encoding":{"s":{"explode":false}}}`, `{"s":["a&b","c"]}`, "multipart/form-data", "s :a&b,c"},
		{`"multipart/form-data":{"schema":{"properties":{"s":{}}},"encoding":{"s":{"style":"pipeDelimited"}}}`, `{"s":["a","b c"]}`, "multipart/form-data", "s :a|b c"},
		{`"multipart/form-data":{"schema":{"properties":{"s":{}}},"encoding":{"s":{"style":"deepObject","explode":true}}}`, `{"s":{"a b":[1]}}`, "multipart/form-data", "s[a b][] :1"},
		{`"application/x-www-form-urlencoded":{"schema":{"properties":{"a":{}}},"encoding":{"a":{"style":"pipeDelimited"}}}`, `{"a":["x","y"]}`, "application/x-www-form-urlencoded", `a=x%7Cy`},
		// An upload may be left out (as FastAPI describes it), or be one file or several.
		{`"multipart/form-data":{"schema":{"properties":{"f":{"anyOf":[{"type":"string","format":"binary"},{"type":"null"}]},"g":{"anyOf":[{"type":"array","items":{"contentMediaType":"application/octet-stream"}},{"type":null}]},"h":{"oneOf":[{"format":"binary"},{"type":"array","items":{"format":"binary"}}]},"t":{"anyOf":[{"format":"binary"},{"type":"string"}]}}}}`,
			`{"f":"1","g":["2"],"h":"3","t":"4"}`, "multipart/form-data", "f 1 text/css:1|g 2 text/css:2|h 3 text/css:3|t :4"},
		{`"multipart/form-data":{"schema":{"allOf":[{"properties":{"n":{}}},{"properties":{"f":{"allOf":[{"format":"binary"}],"nullable":true}}}]}}`, `{"body":{"n":1,"f":"1"}}`, "multipart/form-data", "n :1|f 1 text/css:1"},
		{`"multipart/form-data":{"schema":{"oneOf":[{"properties":{"f":{"format":"binary"},"u":{"format":"binary"}}},{"properties":{"u":{"type":"string"}}}]}}`, `{"body":{"f":"1","u":"2"}}`, "multipart/form-data", "f 1 text/css:1|u :2"},
		// JSON and simple forms cannot have files.
		{`"application/json":{"schema":{"properties":{"f":{"format":"binary"}}}},"multipart/form-data":{"schema":{"properties":{"f":{"format":"binary"}}}}`, `{"f":"1"}`, "multipart/form-data", "f 1 text/css:1"},
		{`"application/json":{"schema":{"properties":{"f":{"type":"string"}}}},"multipart/form-data":{"schema":{"properties":{"f":{"format":"binary"}}}}`, `{"f":"1"}`, "application/json", `{"f":"1"}`},
		{`"application/json-patch+json":{"schema":{"type":"object"}},"application/merge-patch+json":{"schema":{"type":"object"}}`, `{"body":{"a":1}}`, "application/merge-patch+json", `{"a":1}`},
		{`"application/json-patch+json":{"schema":{"type":"array"}},"application/merge-patch+json":{"schema":{"type":"object"}}`, `{"body":[1]}`, "application/json-patch+json", `[1]`},
		{`"application/json-patch+json":{"schema":{}}`, `{"body":[1]}`, "application/json-patch+json", `[1]`},
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

// Forms of Swagger 2.0 are written as collectionFormat says, in both kinds of bodies.
func TestCollectionFormatsOfForms(t *testing.T) {
	for _, c := range []struct{ format, form, multipart string }{
		{``, "v=a,b%20c", "v :a,b c"},
		{`"collectionFormat":"csv",`, "v=a,b%20c", "v :a,b c"},
		{`"collectionFormat":"ssv",`, "v=a%20b%20c", "v :a b c"},
		{`"collectionFormat":"tsv",`, "v=a%09b%20c", "v :a\tb c"},
		{`"collectionFormat":"pipes",`, "v=a%7Cb%20c", "v :a|b c"},
		{`"collectionFormat":"multi",`, "v=a&v=b%20c", "v :a|v :b c"},
	} {
		for media, want := range map[string]string{"application/x-www-form-urlencoded": c.form, "multipart/form-data": c.multipart} {
			x := operations(t, fmt.Sprintf(`{"swagger":"2.0","host":"x.example","paths":{"/x":{"post":{"operationId":"x","consumes":[%q],"parameters":[{"in":"formData",%s"name":"v","type":"array","items":{"type":"string"}}]}}}}`,
				media, c.format), Options{Name: "x.json"})["x"]
			r, err := x.Request([]byte(`{"v":["a","b c"]}`), nil)
			if err != nil {
				t.Fatal(err)
			}
			body := string(r.Body)
			if _, boundary, found := strings.Cut(r.Header.Get("Content-Type"), "; boundary="); found {
				body = shortened(body, boundary)
			}
			if body != want {
				t.Errorf("%s %s: %q, want %q", media, c.format, body, want)
			}
		}
	}
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

// one reads a document whose only operation has the given members; head has the members of
// the document before its paths.
func one(t *testing.T, name, head, members string) *Operation {
	t.Helper()
	return operations(t, fmt.Sprintf(`{%s,"paths":{"/x/{id}":{"parameters":[{"name":"id","in":"path","schema":{"type":"string"}},{"name":"page","in":"query","schema":{"type":"string"}}],"post":{"operationId":"x",%s}}}}`, head, members), Options{Name: name})["x"]
}

const head3 = `"openapi":"3.0.0","servers":[{"url":"https://x.example/a?v=1"}]`

func TestParamsOfOperations(t *testing.T) {
	long := strings.Repeat("n", 70)
	for members, want := range map[string]string{
		`"parameters":[{"name":"page","in":"query","schema":{"type":"integer"}}]`:                                                                                      `"page":{"type":"integer"}},"required":["id"]`,
		`"parameters":[{"name":"Upgrade","in":"header"},{"name":"X-A","in":"header"},{"name":"Content-TYPE","in":"header"},{"name":"accept-encoding","in":"header"}]`:  `"page":{"type":"string"},"X-A":true},"required"`,
		`"parameters":[{"name":"a b","in":"cookie"}]`:                                                                                                                  `the parameter "a b" is not the name of a cookie`,
		`"parameters":[{"name":"` + long + `","in":"query"}]`:                                                                                                          `"` + long[:57] + `_`,
		`"parameters":[{"name":"a","in":"query","schema":{"$ref":"#/s/A","minLength":3}}]},"get":{"parameters":[]}}},"s":{"A":{"type":"string"}},"x":{"y":{"z":{"a":1`: `"a":{"$ref":"#/$defs/A"}}`,
		`"parameters":[{"name":"a","in":"query","schema":{"type":"string","x-nullable":true}}]`:                                                                        `"a":{"type":["string","null"]}`,
		`"parameters":[{"name":"a","in":"query","type":"integer","minimum":1},{"name":"b","in":"query","schema":{"anyOf":[{"type":null},{"type":"integer"}]}}]`:        `"a":{"type":"integer","minimum":1},"b":{"anyOf":[{"type":"null"},{"type":"integer"}]}`,
	} {
		x := one(t, "x.json", head3, members)
		got := string(x.Input)
		if x.Problem != nil {
			got = x.Problem.String()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", members, got, want)
		}
	}
	x := one(t, "x.json", `"swagger":"2.0","host":"x.example","schemes":["ws","http","https"]`, `"consumes":["multipart/form-data"],"parameters":[{"name":"f","in":"formData","type":"file"},{"name":"g","in":"formData","type":"array","items":{"type":"file"}}]`)
	if want := `"f":{"type":"string","format":"binary"},"g":{"type":"array","items":{"type":"string","format":"binary"}}`; !strings.Contains(string(x.Input), want) || x.Server != "https://x.example" {
		t.Errorf("%s, %s", x.Input, x.Server)
	}
	// A body of any type that is a file is sent as it is, as in OpenAPI 3.
	x = one(t, "x.json", `"swagger":"2.0","host":"x.example"`, `"consumes":["*/*"],"parameters":[{"name":"b","in":"body","schema":{"format":"binary"}}]`)
	r, err := x.Request([]byte(`{"id":"1","body":"a.bin"}`), func(_, value string) (File, error) { return File{value, "text/css", []byte(value)}, nil })
	if err != nil || r.Header.Get("Content-Type") != "application/octet-stream" || string(r.Body) != "a.bin" {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestResultsOfOperations(t *testing.T) {
	json := func(schema string) string { return `{"content":{"application/json":{"schema":` + schema + `}}}` }
	for responses, want := range map[string]string{
		`"default":` + json(`{"type":"object"}`):                                                `default {"type":"object"}`,
		`"200":` + json(`{}`) + `,"201":` + json(`true`):                                        ` `,
		`"default":` + json(`{"properties":{"a":{}}}`):                                          `default {"type":"object","properties":{"a":{}}}`,
		`"default":` + json(`{"properties":{"a":{}}}`) + `,"201":` + json(`{"type":"integer"}`): `201 value {"type":"object","properties":{"value":{"type":"integer"}},"required":["value"]}`,
		`"default":` + json(`{"properties":{"a":{}}}`) + `,"204":{}`:                            ` `,
		`"404":` + json(`{"type":"object"}`) + `,"204":{}`:                                      ` `,
		`"200":{"content":{"text/csv":{},"application/json":{"schema":{"type":["object","null"],"properties":{"a":{"writeOnly":true},"b":{}}}}}}`: `200 {"type":"object","properties":{"b":{}}}`,
		`"200":` + json(`{"type":"array"}`) + `,"202":` + json(`{"type":"array"}`):                                                                `200 items, 202 items {"type":"object","properties":{"items":{"type":"array"}},"required":["items"]}`,
		`"2XX":` + json(`{"$ref":"#/s/A"}`) + `,"201":` + json(`{"type":"integer"}`):                                                              `2XX 1, 201 value 2 {"type":"object","anyOf":[{"type":"object","properties":{"a":{"$ref":"#/$defs/B"}}},{"type":"object","properties":{"value":{"type":"integer"}},"required":["value"]}],"$defs":{"B":{"type":"null"}}}`,
		`"200":` + json(`{"properties":{"a":{}}}`) + `,"202":{"content":{"application/json":{}}}`:                                                 `200 1, 202 2 {"type":"object","anyOf":[{"type":"object","properties":{"a":{}}},{"type":"object"}]}`,
	} {
		x := one(t, "x.json", head3+`,"s":{"A":{"properties":{"a":{"$ref":"#/s/B"}}},"B":{"type":"null"}}`, `"responses":{`+responses+`}`)
		var kinds []string
		for _, k := range x.Plan.Outputs {
			kinds = append(kinds, strings.Join(strings.Fields(fmt.Sprint(k.Status, " ", k.Wrap, " ", strings.Trim(fmt.Sprint(k.Branch), "0"))), " "))
		}
		if got := strings.Join(kinds, ", ") + " " + string(x.Output); got != want {
			t.Errorf("%s:\n%s, want\n%s", responses, got, want)
		}
	}
}

// The schema of a status is that of the most precise kind of responses.
func TestOutputOfStatus(t *testing.T) {
	x := &Operation{Output: []byte(`{"type":"object","anyOf":[{"title":"class"},{"title":"201"}],"$defs":{"A":true}}`),
		Plan: Plan{Outputs: []Output{{Status: "default"}, {Status: "2xx", Branch: 1}, {Status: "201", Branch: 2}, {Status: "202", Branch: 3}}}}
	for status, want := range map[int]string{200: `{"title":"class","$defs":{"A":true}}`, 201: `{"title":"201","$defs":{"A":true}}`, 202: "", 302: string(x.Output)} {
		if got := string(x.OutputSchema(x.Plan.OutputOf(status))); got != want {
			t.Errorf("%d: %s, want %s", status, got, want)
		}
	}
	if got := (&Plan{Outputs: []Output{{Status: "200"}}}).OutputOf(201); got != nil {
		t.Errorf("a status that is not described: %+v", got)
	}
}

func TestRequestsOfOperations(t *testing.T) {
	for _, c := range []struct{ members, params, want string }{
		{`"responses":{"200":{"content":{"text/csv":{},"application/json":{}}}}`, `{"id":"1","page":"2"}`, "https://x.example/a/x/1?v=1&page=2 application/json, text/csv, */*;q=0.1 "},
		{`"requestBody":{"required":true,"content":{"application/json":{"schema":{"properties":{"a":{}}}}}}`, `{"id":"1"}`, "https://x.example/a/x/1?v=1 application/json, */*;q=0.5 {}"},
		{`"parameters":[{"name":"d","in":"query","style":"deepObject"}]`, `{"id":"1","d":{"k":1}}`, "https://x.example/a/x/1?v=1&d[k]=1 application/json, */*;q=0.5 "},
		{`"parameters":[{"name":"c","in":"query","content":{"text/plain":{}}}]`, `{"id":"1","c":"q"}`, "https://x.example/a/x/1?v=1&c=q application/json, */*;q=0.5 "},
		{`"requestBody":{"content":{"multipart/form-data":{"schema":{"properties":{"f":{"format":"binary"}}},"encoding":{"f":{"contentType":"image/png, image/jpeg"}}}}}`, `{"id":"1","f":"n"}`, "https://x.example/a/x/1?v=1 application/json, */*;q=0.5 f n text/css:n"},
	} {
		r, err := one(t, "x.json", head3, c.members).Request([]byte(c.params), func(_, value string) (File, error) { return File{value, "text/css", []byte(value)}, nil })
		if err != nil {
			t.Errorf("%s: %v", c.members, err)
			continue
		}
		body := string(r.Body)
		if _, boundary, ok := strings.Cut(r.Header.Get("Content-Type"), "; boundary="); ok {
			body = shortened(body, boundary)
		}
		if got := r.URL + " " + r.Header.Get("Accept") + " " + body; got != c.want {
			t.Errorf("%s: %s, want %s", c.members, got, c.want)
		}
	}
}

// OpenAPI 3.2 has more methods, and media types that are references.
func TestOperationsOf32(t *testing.T) {
	all := operations(t, `{"openapi":"3.2.0","servers":[{"url":"https://x.example"}],"paths":{"/x":{
		"query":{"operationId":"q","requestBody":{"required":true,"content":{"application/json":{"$ref":"#/components/mediaTypes/M"}}},"responses":{"200":{"content":{"application/json":{"$ref":"#/components/mediaTypes/M"}}}}},
		"additionalOperations":{"COPY":{"operationId":"c"},"CONNECT":{"operationId":"t"},"a b":{}}}},"components":{"mediaTypes":{"M":{"schema":{"type":"object","properties":{"a":{}}}}}}}`, Options{Name: "x.json"})
	for name, want := range map[string]string{"q": "QUERY", "c": "COPY"} {
		r, err := all[name].Request([]byte(`{"a":1}`), nil)
		if err != nil || r.Method != want || (string(r.Body) == `{"a":1}`) != (name == "q") {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	if got := string(all["q"].Output); got != `{"type":"object","properties":{"a":{}}}` {
		t.Errorf("the result is %s", got)
	}
	broken := 0
	for _, x := range all {
		if x.Problem != nil && strings.Contains(x.Problem.Message, "is not the method of an operation") {
			broken++
		}
	}
	if broken != 2 {
		t.Errorf("%d operations without a method, want 2", broken)
	}
}

// A document in many files refers to its operations, each of which is one.
func TestOperationsInFiles(t *testing.T) {
	var paths []string
	for i := range 2000 {
		paths = append(paths, fmt.Sprintf(`"/x/%d/{id}":{"post":{"$ref":"ops/%d.json"}}`, i, i))
	}
	all := operations(t, `{"openapi":"3.0.0","servers":[{"url":"https://x.example"}],"paths":{`+strings.Join(paths, ",")+`,"/y":{"get":{"$ref":"#/nowhere"}}}}`, Options{Name: "x.json",
		Open: func(name string) ([]byte, error) {
			return fmt.Appendf(nil, `{"operationId":"op%s","parameters":[{"name":"id","in":"path","schema":{"type":"string"}}],"requestBody":{"content":{"text/plain":{}}}}`, strings.Trim(name, "ops/.jn")), nil
		}})
	r, err := all["op1999"].Request([]byte(`{"id":"a","body":"b"}`), nil)
	if err != nil || r.URL != "https://x.example/x/1999/a" || string(r.Body) != "b" {
		t.Errorf("%+v, %v", r, err)
	}
	if x := all["get_y"]; x == nil || x.Problem == nil || !strings.Contains(x.Problem.Message, "leads to nothing") {
		t.Errorf("a reference without a target: %+v", x)
	}
}

// Some documents tell operations of one path apart by a query or a fragment.
func TestPathsWithQueryOrFragment(t *testing.T) {
	for route, want := range map[string]string{
		"/x/{id}#add?b":      "https://x.example/x/7?q=1",
		"/x/{id}?do=a b#c":   "has a character that no path has",
		"/x/{id}?do=add&n":   "https://x.example/x/7?do=add&n&q=1",
		"/x/{id}?do={other}": `needs "other"`,
		"/x/{id}?do={q}&n=1": "https://x.example/x/7?n=1&do=1",
		"/x?who={id}&q={q}":  "https://x.example/x?who=7&q=1",
		"/x?id={id}&q=a{q}":  "has a character that no path has",
		"/x/{id}/../y#a":     "leaves the server's base",
		"#/x/{id}":           "does not begin with /",
		"/x#{id}":            "https://x.example/x?q=1",
	} {
		x := operations(t, fmt.Sprintf(`{"openapi":"3.0.0","servers":[{"url":"https://x.example"}],"paths":{%q:{"get":{"operationId":"x","parameters":[{"name":"id","in":"path"},{"name":"q","in":"query"}]}}}}`, route), Options{Name: "x.json"})["x"]
		if x.Problem != nil {
			if !strings.Contains(x.Problem.String(), want) {
				t.Errorf("%s: %v, want %s", route, x.Problem, want)
			}
			continue
		}
		if r, err := x.Request([]byte(`{"id":7,"q":1}`), nil); err != nil || r.URL != want {
			t.Errorf("%s: %v, %v, want %s", route, r, err, want)
		}
	}
}

func TestServersOfDocuments(t *testing.T) {
	for _, c := range []struct{ name, servers, want string }{
		{"x.json", `{"url":"https://{r}.x.example/v1/","variables":{"r":{"default":"eu"}}}`, "https://eu.x.example/v1"},
		{"x.json", `{"url":"https://x.example:{p}/{v}{b}","variables":{"p":{"default":8443},"v":{"enum":["v2","v1"]},"b":{"default":""}}}`, "https://x.example:8443/v2"},
		{"x.json", `{"url":"https://x.example/{b}","variables":{"b":{"default":"/prod"}}}`, "https://x.example/prod"},
		{"x.json", `{"url":"https://{r}.x.example","variables":{"r":{"description":"region"}}}`, "is not usable; set baseUrl"},
		{"x.json", `{"url":"https://{r}.x.example"}`, "is not usable; set baseUrl"},
		{"x.json", `{"url":"/v1"}`, "does not say which host serves the API; set baseUrl"},
		{"x.json", `{"url":"//x.example/v1"}`, "https://x.example/v1"},
		{"http://x.example/api.json", `{"url":"//x.example/v1"}`, "http://x.example/v1"},
		{"x.json", `{"url":"https://x.example/a/%2e%2E/b"}`, "has a segment . or .."},
		{"x.json", `{"url":"ftp://x.example/"}`, "not a plain http or https address"},
		{"x.json", `{"url":"https://u:p@x.example/"}`, "not a plain http or https address"},
		{"https://x.example/docs/api.json", `{"url":"../v2"}`, "https://x.example/v2"},
		{"https://x.example/docs/api.json", `{"url":"{base}","variables":{"base":{"default":""}}}`, "https://x.example"},
		{"https://x.example/docs/api.json", `{"url":"http://x.example/v2"}`, "on another host"},
		{"https://x.example/docs/api.json", `{"url":"https://x.example:8443/v2"}`, "on another host"},
	} {
		x := one(t, c.name, `"openapi":"3.0.0","servers":[`+c.servers+`]`, `"responses":{}`)
		got := x.Server
		if x.Problem != nil {
			got = x.Problem.String()
		}
		if !strings.Contains(got, c.want) || c.want == "" || strings.HasSuffix(got, ".json") {
			t.Errorf("%s in %s: %s, want %s", c.servers, c.name, got, c.want)
		}
	}
}

// placeOf returns the place of a param of Swagger 2.0 in TestStyles.
func placeOf(rest string) string {
	if place := strings.TrimSpace(rest); place != "" {
		return place
	}
	return "query"
}
