package spec

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const zooFile = "../../../testdata/openapi/zoo.yaml"

// zoo returns the operations of the sample document by name.
func zoo(t *testing.T) map[string]*Operation {
	t.Helper()
	data, err := os.ReadFile(zooFile)
	if err != nil {
		t.Fatal(err)
	}
	return operations(t, string(data), Options{Name: "zoo.yaml", FileNote: "A file."})
}

func operations(t *testing.T, doc string, o Options) map[string]*Operation {
	t.Helper()
	d, err := Read([]byte(doc), o)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*Operation{}
	for i := range d.Operations {
		out[d.Operations[i].Name] = &d.Operations[i]
	}
	return out
}

func TestSchemasOfParamsAndResults(t *testing.T) {
	all := zoo(t)
	for name, want := range map[string][2]string{
		"listAnimals": {
			`{"type":"object","properties":{"kind":{"description":"Only animals of these kinds.","type":"array","items":{"type":"string","enum":["bird","cat"]}},"limit":{"type":"integer","exclusiveMinimum":0,"maximum":100},"filter":{"type":"object","properties":{"cage":{"type":"integer"}}},"X-Trace":{"type":"string"}},"additionalProperties":false}`,
			`{"type":"object","properties":{"items":{"type":"array","items":{"$ref":"#/$defs/Animal"}}},"required":["items"],"$defs":{"Animal":{"type":"object","required":["name","id"],"properties":{"id":{"type":"integer","readOnly":true},"name":{"type":["string","null"]},"kind":{"type":"string","enum":["bird","cat"]},"parent":{"$ref":"#/$defs/Animal"}}}}}`,
		},
		"addAnimal": {
			`{"type":"object","properties":{"name":{"type":["string","null"]},"secret":{"type":"string","writeOnly":true},"kind":{"type":"string","enum":["bird","cat"],"examples":["bird"]},"parent":{"$ref":"#/$defs/Animal"}},"required":["name"],"additionalProperties":false,"$defs":{"Animal":{"type":"object","required":["name"],"properties":{"name":{"type":["string","null"]},"secret":{"type":"string","writeOnly":true},"kind":{"type":"string","enum":["bird","cat"],"examples":["bird"]},"parent":{"$ref":"#/$defs/Animal"}}}}}`,
			`{"type":"object","required":["name","id"],"properties":{"id":{"type":"integer","readOnly":true},"name":{"type":["string","null"]},"kind":{"type":"string","enum":["bird","cat"]},"parent":{"$ref":"#/$defs/Animal"}},"$defs":{"Animal":{"type":"object","required":["name","id"],"properties":{"id":{"type":"integer","readOnly":true},"name":{"type":["string","null"]},"kind":{"type":"string","enum":["bird","cat"]},"parent":{"$ref":"#/$defs/Animal"}}}}}`,
		},
		"delete_animals_id": {
			`{"type":"object","properties":{"id":{"description":"Number of the animal.","type":"integer"},"query_id":{"type":"string"}},"required":["id"],"additionalProperties":false}`,
			``,
		},
		"setPhoto": {
			`{"type":"object","properties":{"id":{"type":"string"},"photo":{"type":"string","format":"binary","description":"The picture.\n\nA file."},"caption":{"type":"string"}},"required":["id"],"additionalProperties":false}`,
			``,
		},
	} {
		o := all[name]
		if o == nil {
			t.Errorf("no operation %s", name)
			continue
		}
		if diff := cmp.Diff(want[0], string(o.Input)); diff != "" {
			t.Errorf("%s: params (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(want[1], string(o.Output)); diff != "" {
			t.Errorf("%s: result (-want +got):\n%s", name, diff)
		}
	}
}

// A property that is left out is not required either, wherever it is declared.
func TestRequiredReadOnlyProperties(t *testing.T) {
	all := operations(t, `{"openapi":"3.0.0","servers":[{"url":"https://x.example"}],"paths":{"/x":{"post":{"operationId":"x","requestBody":{"content":{"application/json":{"schema":{
		"type":"object","properties":{"list":{"type":"array","items":{"$ref":"#/components/schemas/Cat"}},"one":{"required":["at","id"],"properties":{"at":{"$ref":"#/components/schemas/Time"}},"allOf":[{"required":["at","name"]}]}}}}}},"responses":{}}}},
		"components":{"schemas":{"Time":{"type":"string","readOnly":true},"Animal":{"type":"object","properties":{"id":{"type":"integer","readOnly":true},"name":{"type":"string"}}},
		"Cat":{"required":["id","name"],"allOf":[{"$ref":"#/components/schemas/Animal"},{"required":["id"],"properties":{"owner":{"required":["id"]}}}]}}}}`, Options{Name: "x.json"})
	want := `{"type":"object","properties":{"list":{"type":"array","items":{"$ref":"#/$defs/Cat"}},"one":{"required":["id"],"properties":{},"allOf":[{"required":["name"]}]}},"additionalProperties":false,"$defs":{` +
		`"Cat":{"required":["name"],"allOf":[{"$ref":"#/$defs/Animal"},{"properties":{"owner":{"required":["id"]}}}]},"Animal":{"type":"object","properties":{"name":{"type":"string"}}}}}`
	if diff := cmp.Diff(want, string(all["x"].Input)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Of a schema that would be too large, what is referred to last accepts everything.
func TestLargeSchemas(t *testing.T) {
	for limit, want := range map[int]string{
		300: `{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"additionalProperties":false,"$defs":{"A":{"items":{"$ref":"#/$defs/B"}},"B":{"items":{"$ref":"#/$defs/C"}},"C":{"enum":["long long long long"]}}}`,
		190: `{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"additionalProperties":false,"$defs":{"A":{"items":{"$ref":"#/$defs/B"}},"B":{"items":{"$ref":"#/$defs/C"}},"C":true}}`,
		160: `{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"additionalProperties":false,"$defs":{"A":{"items":{"$ref":"#/$defs/B"}},"B":true}}`,
	} {
		x := operations(t, `{"openapi":"3.0.0","servers":[{"url":"https://x.example"}],"paths":{"/x":{"get":{"operationId":"x","parameters":[{"name":"a","in":"query","schema":{"$ref":"#/s/A"}}],"responses":{}}}},
			"s":{"A":{"items":{"$ref":"#/s/B"}},"B":{"items":{"$ref":"#/s/C"}},"C":{"enum":["long long long long"]}}}`, Options{Name: "x.json", MaxSchema: limit})["x"]
		if x.Problem != nil || string(x.Input) != want || len(x.Input) > limit || strings.Contains(x.Description, "not described") != (limit < 300) {
			t.Errorf("limit %d: %v, %q, %d bytes: %s", limit, x.Problem, x.Description, len(x.Input), x.Input)
		}
	}
}

func TestUnusableOperationsKeepTheOthers(t *testing.T) {
	all := zoo(t)
	for name, want := range map[string]string{
		"get_relative": `zoo.yaml:81:5: the path "relative" does not begin with / (at #/paths/relative/get)`,
		"broken":       `zoo.yaml:84:5: the path "/broken/{thing}" needs "thing", which is not among its parameters (at #/paths/~1broken~1{thing}/get)`,
	} {
		if o := all[name]; o == nil || o.Problem == nil || o.Problem.String() != want {
			t.Errorf("%s: %v, want %s", name, o, want)
		}
	}
	if all["listAnimals"].Problem != nil {
		t.Error(all["listAnimals"].Problem)
	}
}

func TestEncodedOperationsAreTheSame(t *testing.T) {
	data, err := os.ReadFile(zooFile)
	if err != nil {
		t.Fatal(err)
	}
	d, err := Read(data, Options{Name: "zoo.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := Encode(d)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Decode(encoded)
	if err != nil {
		t.Fatal(err)
	}
	for i := range again {
		if err := again[i].Load(); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(d.Operations, again, cmp.AllowUnexported(Operation{})); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
	for i := range encoded {
		if _, err := Decode(encoded[:i]); err == nil {
			t.Fatalf("%d of %d bytes are accepted", i, len(encoded))
		}
	}
}

func TestRequests(t *testing.T) {
	all := zoo(t)
	for _, c := range []struct{ op, params, url, header, body string }{
		{"listAnimals", `{"kind":["bird","cat"],"limit":5,"filter":{"cage":3},"X-Trace":"a b"}`, "GET https://eu.zoo.example/v1/animals?kind=bird&kind=cat&limit=5&filter[cage]=3", "X-Trace: a b", ""},
		{"getAnimal", `{"id":7}`, "GET https://eu.zoo.example/v1/animals/7", "", ""},
		{"delete_animals_id", `{"id":7,"query_id":"a/b&c"}`, "DELETE https://eu.zoo.example/v1/animals/7?id=a%2Fb%26c", "", ""},
		{"addAnimal", `{"name":"Ada","kind":"cat"}`, "POST https://eu.zoo.example/v1/animals", "Content-Type: application/json", `{"name":"Ada","kind":"cat"}`},
		{"setPhoto", `{"id":"a/b"}`, "PUT https://eu.zoo.example/v1/animals/a%2Fb/photo", "", ""},
		{"setPhoto", `{"id":"1","photo":"ada.png","caption":"é"}`, "PUT https://eu.zoo.example/v1/animals/1/photo", "", "--B\nContent-Disposition: form-data; name=\"photo\"; filename=\"ada.png\"\nContent-Type: image/png\n\nbytes\n--B\nContent-Disposition: form-data; name=\"caption\"\n\né\n--B--\n"},
	} {
		r, err := all[c.op].Request([]byte(c.params), func(_, value string) (File, error) { return File{value, "image/png", []byte("bytes")}, nil })
		if err != nil {
			t.Errorf("%s %s: %v", c.op, c.params, err)
			continue
		}
		if got := r.Method + " " + r.URL; got != c.url {
			t.Errorf("%s %s: %s, want %s", c.op, c.params, got, c.url)
		}
		if name, value, _ := strings.Cut(c.header, ": "); r.Header.Get(name) != value {
			t.Errorf("%s: header %s is %q", c.op, name, r.Header.Get(name))
		}
		body := string(r.Body)
		if _, boundary, ok := strings.Cut(r.Header.Get("Content-Type"), "boundary="); ok {
			body = strings.ReplaceAll(strings.ReplaceAll(body, boundary, "B"), "\r\n", "\n")
		}
		if diff := cmp.Diff(c.body, body); diff != "" {
			t.Errorf("%s %s: body (-want +got):\n%s", c.op, c.params, diff)
		}
	}
}

// The names of params are those that every model provider accepts; the wire has the
// document's own.
func TestOddNamesOfParams(t *testing.T) {
	all := operations(t, `{"openapi":"3.0.0","servers":[{"url":"https://x.example"}],"paths":{"/x":{"post":{"operationId":"x","parameters":[
		{"name":"Date<","in":"query","schema":{"type":"string"}},{"name":"Date>","in":"query","schema":{"type":"string"}},{"name":"filter[a b]","in":"query","schema":{"type":"string"}}],
		"requestBody":{"content":{"application/json":{"schema":{"type":"object","required":["$select"],"properties":{"$select":{"type":"string"},"b":{"type":"integer"}}}}}},"responses":{}}}}}`, Options{Name: "x.json"})
	r, err := all["x"].Request([]byte(`{"Date_":"1","query_Date_":"2","filter_a_b_":"3","_select":"4"}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := "https://x.example/x?Date%3C=1&Date%3E=2&filter%5Ba%20b%5D=3"; r.URL != want || string(r.Body) != `{"$select":"4"}` {
		t.Errorf("%s %s, want %s", r.URL, r.Body, want)
	}
	if _, err := all["x"].Request([]byte(`{"b":1}`), nil); err == nil || !strings.Contains(err.Error(), "$select is required with b") {
		t.Errorf("a body without a required member: %v", err)
	}
}

// An alternative has the values of the discriminator that stand for it, unless it has its
// own; a server takes values to which several alternatives apply.
func TestAlternatives(t *testing.T) {
	const defs = `"Cat":{"type":"object","properties":{"kind":{"type":"string"},"meow":{"type":"boolean"}}},"Dog":{"type":"object","properties":{"kind":{"type":"string","enum":["hound"]}}},"Pet":{"type":"object","properties":{"kind":{"type":"string"}},"discriminator":{"propertyName":"kind","mapping":{"cat":"Cat"}}}`
	for schema, want := range map[string]string{
		`{"oneOf":[{"type":"integer"},{"type":"number"}]}`:                                                                                                          `{"anyOf":[{"type":"integer"},{"type":"number"}]}`,
		`{"anyOf":[{"type":"integer"}],"oneOf":[{"type":"number"}]}`:                                                                                                `{"anyOf":[{"type":"integer"}],"oneOf":[{"type":"number"}]}`,
		`{"oneOf":[{"$ref":"#/components/schemas/Cat"}],"discriminator":{"propertyName":"kind"}}`:                                                                   `{"anyOf":[{"$ref":"#/$defs/Cat","properties":{"kind":{"enum":["Cat"]}}}],"discriminator":{"propertyName":"kind"}}`,
		`{"oneOf":[{"$ref":"#/components/schemas/Dog"}],"discriminator":{"propertyName":"kind"}}`:                                                                   `{"anyOf":[{"$ref":"#/$defs/Dog"}],"discriminator":{"propertyName":"kind"}}`,
		`{"anyOf":[{"$ref":"#/components/schemas/Cat"}],"discriminator":{"propertyName":"kind","mapping":{"c":"Cat","k":"#/components/schemas/Cat","x":"#/none"}}}`: `{"anyOf":[{"$ref":"#/$defs/Cat","properties":{"kind":{"enum":["c","k"]}}}],"discriminator":{"propertyName":"kind","mapping":{"c":"#/$defs/Cat","k":"#/$defs/Cat"}}}`,
		`{"$ref":"#/components/schemas/Pet"}`:                                                                                                                       `{"$ref":"#/$defs/Pet"}`,
	} {
		x := operations(t, `{"openapi":"3.0.0","servers":[{"url":"https://x.example"}],"paths":{"/x":{"post":{"operationId":"x","requestBody":{"content":{"application/json":{"schema":`+schema+`}}}}}},"components":{"schemas":{`+defs+`}}}`, Options{Name: "x.json"})["x"]
		if x.Problem != nil {
			t.Errorf("%s: %v", schema, x.Problem)
			continue
		}
		var got struct {
			Properties struct{ Body json.RawMessage }
		}
		if err := json.Unmarshal(x.Input, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got.Properties.Body)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", schema, diff)
		}
		if strings.Contains(schema, "Pet") && !strings.Contains(string(x.Input), `"mapping":{"cat":"#/$defs/Cat"}`) {
			t.Errorf("the mapping is lost: %s", x.Input)
		}
	}
}

func TestNamesOfOperations(t *testing.T) {
	all := operations(t, `{"openapi":"3.0.0","servers":[{"url":"https://x.example"}],"paths":{
		"/a":{"get":{"operationId":"list"},"post":{"operationId":"列表"}},
		"/b/{id}":{"parameters":[{"name":"id","in":"path"}],"get":{"operationId":"list"},"put":{"operationId":"--"},"delete":{"operationId":""}},
		"/c":{"get":{"operationId":"get_c"},"put":{"operationId":"get_c"},"head":{"operationId":"put_c"}}}}`, Options{Name: "x.json"})
	got := map[string]string{}
	for name, o := range all {
		got[o.Method+" "+o.Path] = name
	}
	want := map[string]string{
		"GET /a": "list", "POST /a": "post_a", "GET /b/{id}": "get_b_id", "PUT /b/{id}": "put_b_id", "DELETE /b/{id}": "delete_b_id",
		"GET /c": "get_c", "PUT /c": "put_c", "HEAD /c": "head_c",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// YAML without quotes has numbers and booleans where text is meant.
func TestTextWithoutQuotes(t *testing.T) {
	ops := operations(t, `
openapi: 3.0
info: {title: 5, version: 1.10}
servers: [{url: "https://x.example:{port}", variables: {port: {default: 8443}}}]
paths:
  /e/{10}:
    get:
      operationId: 404
      summary: 12
      parameters:
        - {name: 10, in: path, required: true, schema: {type: string, enum: [1.10, true]}}
      responses: {200: {description: ok}}
`, Options{Name: "x.yaml"})
	x := ops["404"]
	if x == nil || x.Problem != nil {
		t.Fatalf("operations %v", ops)
	}
	if r, err := x.Request([]byte(`{"10":"1.10"}`), nil); err != nil || r.URL != "https://x.example:8443/e/1.10" {
		t.Errorf("request %v, %v", r, err)
	}
	if x.Summary != "12" {
		t.Errorf("summary %q", x.Summary)
	}
}

// What is sent as text is shown as text when it is received.
func TestKindsOfMediaTypes(t *testing.T) {
	for media, want := range map[string][2]bool{
		"application/json": {true, false}, "application/problem+json": {true, false}, "*/*": {false, false},
		"text/csv": {false, true}, "image/svg+xml": {false, true}, "application/sql": {false, true},
		"application/x-javascript": {false, true}, "application/x-ndjson": {false, true},
		"application/x-www-form-urlencoded": {false, true}, "image/png": {false, false},
	} {
		if got := [2]bool{IsJSON(media), IsText(media)}; got != want {
			t.Errorf("%s: %v, want %v", media, got, want)
		}
	}
}
