package spec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/url"
	"os"
	"strings"
	"testing"
)

// TestHostileDocuments reads documents that are made to cost much or to lead astray. Each
// costs at most the operation that uses it.
func TestHostileDocuments(t *testing.T) {
	operation := func(schema string) string {
		return `{"openapi":"3.1.0","servers":[{"url":"https://x.example"}],"paths":{"/good":{"get":{"operationId":"good","responses":{}}},
			"/x":{"get":{"operationId":"bad","parameters":[{"name":"a","in":"query","schema":` + schema + `}],"responses":{}}}},"components":{"schemas":{%s}}}`
	}
	var bomb []string
	for i := range 200 {
		bomb = append(bomb, fmt.Sprintf(`"S%d":{"anyOf":[{"$ref":"#/components/schemas/S%d"},{"$ref":"#/components/schemas/S%d"}]}`, i, i+1, i+1))
	}
	bomb = append(bomb, `"S200":{"type":"string"}`)
	deep := []string{`"D2000":{}`}
	for i := range 2000 {
		deep = append(deep, fmt.Sprintf(`"D%d":{"not":{"$ref":"#/components/schemas/D%d"}}`, i, i+1))
	}
	for name, c := range map[string]struct{ doc, problem string }{
		"bomb of references": {fmt.Sprintf(operation(`{"$ref":"#/components/schemas/S0"}`), strings.Join(bomb, ",")), ""},
		"circle":             {fmt.Sprintf(operation(`{"$ref":"#/components/schemas/A"}`), `"A":{"$ref":"#/components/schemas/A"}`), "contains itself"},
		"circle of allOf":    {fmt.Sprintf(operation(`{"$ref":"#/components/schemas/A"}`), `"A":{"allOf":[{"$ref":"#/components/schemas/B"}]},"B":{"not":{"$ref":"#/components/schemas/A"}}`), "contains itself"},
		"chain":              {fmt.Sprintf(operation(`{"$ref":"#/components/schemas/D0"}`), strings.Join(deep, ",")), "more than 1000 schemas refer to one another"},
		"deep":               {fmt.Sprintf(operation(strings.Repeat(`{"items":`, 80)+"{}"+strings.Repeat("}", 80)), ""), "nested deeper than 60 levels"},
		"wrong types":        {fmt.Sprintf(operation(`{"type":null,"enum":[],"properties":[],"required":true,"minimum":"a","items":null,"allOf":[],"pattern":1,"maxLength":-1}`), ""), ""},
	} {
		t.Run(name, func(t *testing.T) {
			all := operations(t, c.doc, Options{Name: "x.json"})
			if all["good"].Problem != nil {
				t.Error(all["good"].Problem)
			}
			switch p := all["bad"].Problem; {
			case c.problem == "" && p != nil, c.problem != "" && (p == nil || !strings.Contains(p.Message, c.problem)):
				t.Errorf("problem %v, want %q", p, c.problem)
			}
			if len(all["bad"].Input) > 1<<20 {
				t.Errorf("a schema of %d bytes", len(all["bad"].Input))
			}
		})
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		for _, leaf := range []string{"{}", `{"type":"object"}`} {
			schemas := []string{`"S60":` + leaf}
			for i := range 60 {
				schemas = append(schemas, fmt.Sprintf(`"S%d":{%q:[{"$ref":"#/components/schemas/S%d"},{"$ref":"#/components/schemas/S%d"}]}`, i, keyword, i+1, i+1))
			}
			all := operations(t, `{"openapi":"3.1.0","servers":[{"url":"https://x.example"}],"components":{"schemas":{`+strings.Join(schemas, ",")+`}},
				"paths":{"/x":{"get":{"operationId":"x","responses":{"200":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/S0"}}}}}}}}}`, Options{Name: "x.json"})
			if described := all["x"].Output != nil; described != (leaf != "{}") {
				t.Errorf("a bomb of %s of %s in a result: %s", keyword, leaf, all["x"].Output)
			}
		}
	}
	if _, err := Read([]byte("{\"openapi\": \"3.1.0\",\n  \"paths\": {,}}"), Options{Name: "x.json"}); err == nil || err.Error() != "x.json:2:13: invalid JSON: unexpected character ','" {
		t.Errorf("a mistake in JSON: %v", err)
	}
	if _, err := Read([]byte(`{"openapi":"3.1.0","x":[`+strings.Repeat("0,", maxValues)+`0],"paths":{"/x":{"get":{}}}}`), Options{Name: "x.json"}); err == nil || !strings.Contains(err.Error(), "more than 2000000 values") {
		t.Errorf("a document of many values: %v", err)
	}
	if _, err := Read([]byte(strings.Repeat("[", 1000)), Options{Name: "x.json"}); err == nil {
		t.Error("a deep document is accepted")
	}
	aliases := "openapi: 3.0.0\na: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range 9 {
		aliases += fmt.Sprintf("%c: &%c [*%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c]\n", 'b'+i, 'b'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i)
	}
	if _, err := Read([]byte(aliases), Options{Name: "x.yaml"}); err == nil || !strings.Contains(err.Error(), "including aliases") {
		t.Errorf("a bomb of aliases: %v", err)
	}
}

// Values cannot leave their place in a request.
func TestHostileValues(t *testing.T) {
	all := operations(t, `{"openapi":"3.0.0","servers":[{"url":"https://x.example/base"}],"paths":{"/a/{id}/b":{"get":{"operationId":"x","parameters":[
		{"name":"id","in":"path","required":true,"schema":{"type":"string"}},{"name":"q","in":"query","schema":{"type":"string"}},
		{"name":"X-H","in":"header","schema":{"type":"string"}},{"name":"c","in":"cookie","schema":{"type":"string"}},
		{"name":"Host","in":"header","schema":{"type":"string"}},{"name":"authorization","in":"header","schema":{"type":"string"}}],"responses":{}}}}}`, Options{Name: "x.json"})
	op := all["x"]
	for _, id := range []string{"", ".", "..", "%2e%2e", "%252e%252E", "../x", "a/../../b", `..\x`, ".%2e"} {
		params, _ := json.Marshal(map[string]string{"id": id})
		if r, err := op.Request(params, nil); err == nil {
			t.Errorf("%q is accepted: %s", id, r.URL)
		}
	}
	for id, want := range map[string]string{"a/b": "a%2Fb", "a?b#c": "a%3Fb%23c", "a\r\nb": "a%0D%0Ab", "%2F": "%252F", "ä": "%C3%A4", "...": "..."} {
		params, _ := json.Marshal(map[string]string{"id": id, "q": "x&y=z\r\n", "c": "a;b"})
		r, err := op.Request(params, nil)
		if err != nil {
			t.Errorf("%q: %v", id, err)
			continue
		}
		if got := "https://x.example/base/a/" + want + "/b?q=x%26y%3Dz%0D%0A"; r.URL != got || r.Header.Get("Cookie") != "c=a%3Bb" {
			t.Errorf("%q: %s, %s", id, r.URL, r.Header)
		}
	}
	for _, header := range []string{"a\r\nX-Other: b", "a\nb", "a\x00"} {
		params, _ := json.Marshal(map[string]string{"id": "1", "X-H": header})
		if _, err := op.Request(params, nil); err == nil {
			t.Errorf("the header %q is accepted", header)
		}
	}
	if s := string(op.Input); strings.Contains(s, "Host") || strings.Contains(s, "uthorization") {
		t.Errorf("params have headers of the connection: %s", s)
	}
}

func FuzzRead(f *testing.F) {
	data, err := os.ReadFile(zooFile)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(data), `{"id":1}`)
	f.Add(`{"swagger":"2.0","host":"x.example","paths":{"/x/{a}":{"post":{"parameters":[{"name":"a","in":"path","type":"string"},{"name":"f","in":"formData","type":"file"}]}}}}`, `{"a":"b/..","f":"x"}`)
	f.Add(`{"openapi":"3.1.0","servers":[{"url":"https://x.example"}],"paths":{"/{a}":{"get":{"parameters":[{"name":"a","in":"path","schema":{"$ref":"#/paths"}}]}}}}`, `{"a":{"b":[1]}}`)
	f.Fuzz(func(t *testing.T, doc, params string) {
		d, err := Read([]byte(doc), Options{Name: "doc"})
		if err != nil || !json.Valid([]byte(params)) {
			return
		}
		names := map[string]bool{}
		for i := range d.Operations {
			o := &d.Operations[i]
			if names[o.Name] || !json.Valid(o.Input) || o.Output != nil && !json.Valid(o.Output) {
				t.Fatalf("%s: %s %s", o.Name, o.Input, o.Output)
			}
			names[o.Name] = true
			if o.Problem != nil {
				continue
			}
			r, err := o.Request([]byte(params), func(_, value string) (File, error) { return File{Name: value, Data: []byte(value)}, nil })
			if err != nil {
				continue
			}
			base, _ := url.Parse(o.Server)
			u, err := url.Parse(r.URL)
			if err != nil || u.Host != base.Host || !strings.HasPrefix(u.EscapedPath(), strings.TrimSuffix(base.EscapedPath(), "/")) || hasDotSegment(u.EscapedPath()) {
				t.Fatalf("%s leaves %s: %v", r.URL, o.Server, err)
			}
		}
	})
}

// FuzzRequest makes requests of operations with every kind of param and body: whatever the
// params are, they stay in their places.
func FuzzRequest(f *testing.F) {
	const doc = `{"openapi":"3.1.0","servers":[{"url":"https://x.example/base"}],"paths":{
		"/a/{p}/{l}{m}/b":{"post":{"operationId":"json","parameters":[{"name":"p","in":"path"},{"name":"l","in":"path","style":"label"},{"name":"m","in":"path","style":"matrix","explode":true},
			{"name":"q","in":"query","allowReserved":true},{"name":"d","in":"query","style":"deepObject"},{"name":"h","in":"header"},{"name":"c","in":"cookie"}],
			"requestBody":{"content":{"application/json":{"schema":{"properties":{"b":{}},"additionalProperties":true}}}}}},
		"/form":{"post":{"operationId":"form","requestBody":{"content":{"application/x-www-form-urlencoded":{"schema":{"properties":{"b":{},"s":{}}},"encoding":{"s":{"style":"deepObject"}}}}}}},
		"/parts":{"post":{"operationId":"parts","requestBody":{"content":{"multipart/form-data":{"schema":{"properties":{"b":{},"s":{"format":"binary"}}}}}}}}}}`
	d, err := Read([]byte(doc), Options{Name: "x.json"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(`{"p":"..","l":["."],"m":{"a":"/"},"q":"x&y=#","d":{"a":[{"b":1}]},"h":"a\r\nb","c":"a;b","b":null,"s":"f"}`)
	f.Add(`{"s":"\u0001\t\u007f\r\n\"f"}`)
	f.Add(`{"p":"a/b","l":[],"m":[1,2],"q":["%2e"],"d":7,"h":{"a":"b"},"c":["x"],"b":{"k":[1]},"s":["x","y"],"more":1}`)
	f.Fuzz(func(t *testing.T, params string) {
		for i := range d.Operations {
			o := &d.Operations[i]
			r, err := o.Request([]byte(params), func(_, value string) (File, error) {
				return File{Name: value, Type: "text/plain", Data: []byte(value)}, nil
			})
			if err != nil {
				continue
			}
			u, err := url.Parse(r.URL)
			if err != nil || u.Host != "x.example" || u.User != nil || u.Fragment != "" || hasDotSegment(u.EscapedPath()) ||
				strings.Count(u.EscapedPath(), "/") != 2+3*len(o.Plan.Params)/7 || !strings.HasPrefix(u.EscapedPath(), "/base/") {
				t.Fatalf("%s %s: %v", o.Name, r.URL, err)
			}
			for name, values := range r.Header {
				if strings.ContainsAny(name+strings.Join(values, ""), "\r\n\x00") {
					t.Fatalf("%s: header %s: %q", o.Name, name, values)
				}
			}
			if kind, boundary, _ := strings.Cut(r.Header.Get("Content-Type"), "; boundary="); kind == "multipart/form-data" {
				if _, err := multipart.NewReader(bytes.NewReader(r.Body), boundary).ReadForm(1 << 20); err != nil && len(r.Body) > len(boundary)+8 {
					t.Fatalf("%q: %v", r.Body, err)
				}
			}
		}
	})
}

// What says nothing, although the document means something by it, makes an operation unusable:
// otherwise a param, or what it must be, would be missing in silence. In results it is passed over.
func TestMistakesMakeOperationsUnusable(t *testing.T) {
	param := func(schema string) string { return `"parameters":[{"name":"q","in":"query","schema":` + schema + `}]` }
	body := func(schema string) string {
		return `"requestBody":{"content":{"application/json":{"schema":` + schema + `}}}`
	}
	for operation, want := range map[string]string{
		param(`[1,2]`):                                                    "a schema must be an object or a boolean (at #/paths/~1x/post/parameters/0/schema)",
		param(`{"type":"strnig"}`):                                        `"strnig" is not a type`,
		param(`{"type":["string","nul"]}`):                                `"nul" is not a type`,
		param(`{"type":{}}`):                                              "type must be a word",
		param(`{"enum":"a"}`):                                             "enum must be a list",
		param(`{"items":3}`):                                              "items must be a schema",
		param(`{"allOf":{"type":"string"}}`):                              "allOf must be a list of schemas",
		body(`{"properties":{"a":{}},"required":"a"}`):                    "required must be a list of names",
		body(`{"properties":{"a":{}},"required":[1]}`):                    "required must be a list of names",
		body(`{"type":"object","properties":{"a":{"properties":[1]}}}`):   "properties must be an object",
		`"parameters":[{"name":"q","in":"nowhere"}]`:                      `the place (in) of the parameter "q" must be one of path, query, header, cookie`,
		`"parameters":[{"name":"q","in":"body","schema":{}}]`:             `the place (in) of the parameter "q"`,
		`"parameters":[{"name":"q","in":"query","required":"yes"}]`:       "required must be true or false",
		`"parameters":[7]`:                                                "a parameter must be an object",
		`"parameters":{"name":"q"}`:                                       "parameters must be a list",
		`"requestBody":[1]`:                                               "a requestBody must be an object",
		`"requestBody":{"content":[1]}`:                                   "a requestBody must be an object",
		`"requestBody":{"content":{"json":{"schema":{"type":"object"}}}}`: "no key of content is a media type",
		`"responses":{"200":{"content":{"application/json":{"schema":{"type":"strnig","required":"a","properties":[1]}}}}}`: "",
	} {
		all := operations(t, `{"openapi":"3.0.3","servers":[{"url":"https://x.example"}],"paths":{"/x":{"post":{"operationId":"x",`+operation+`},"get":{"operationId":"good"}}}}`, Options{Name: "x.json"})
		if all["good"].Problem != nil {
			t.Errorf("%s: the other operation: %v", operation, all["good"].Problem)
		}
		switch p := all["x"].Problem; {
		case want == "" && p != nil, want != "" && (p == nil || !strings.Contains(p.Message, want) || p.Line == 0):
			t.Errorf("%s: problem %v, want %q", operation, p, want)
		}
	}
}

// Words of other languages are types where it is plain which ones.
func TestForeignTypes(t *testing.T) {
	for word, want := range map[string]string{`"int"`: `{"type":"integer"}`, `"Float"`: `{"type":"number"}`, `"date"`: `{"type":"string"}`, `["bool","none"]`: `{"type":["boolean","null"]}`, `["bool",null]`: `{"type":["boolean","null"]}`, `"any"`: `{}`, `"file"`: `{"type":"string"}`} {
		x := operations(t, `{"openapi":"3.1.0","servers":[{"url":"https://x.example"}],"paths":{"/x":{"get":{"operationId":"x","parameters":[{"name":"q","in":"query","schema":{"type":`+word+`}}]}}}}`, Options{Name: "x.json"})["x"]
		if got := string(x.Input); x.Problem != nil || !strings.Contains(got, `"q":`+want) {
			t.Errorf("%s: %s, %v; want %s", word, got, x.Problem, want)
		}
	}
}

// A reference with words beside it that change nothing is spread like one without.
func TestReferenceWithDescriptionIsSpread(t *testing.T) {
	for beside, spread := range map[string]bool{`,"description":"d","x-a":1`: true, `,"maxProperties":1`: false} {
		all := operations(t, `{"openapi":"3.1.0","servers":[{"url":"https://x.example"}],"components":{"schemas":{"S":{"type":"object","properties":{"a":{"type":"string"}}}}},
			"paths":{"/x":{"post":{"operationId":"x","requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/S"`+beside+`}}}}}}}}`, Options{Name: "x.json"})
		if got := len(all["x"].Plan.Body.Members) == 1; got != spread {
			t.Errorf("%s: spread %v", beside, got)
		}
	}
}
