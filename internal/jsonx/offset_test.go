package jsonx

import "testing"

func TestOffsetOfPointers(t *testing.T) {
	const doc = ` {"a": 1, "b/c": [10, {"d": "x,]"} , 3],"e":{} }`
	for pointer, want := range map[string]string{
		"": `{"a"`, "/a": `"a": 1`, "/b~1c": `"b/c"`, "/b~1c/0": "10", "/b~1c/1": `{"d"`, "/b~1c/1/d": `"d": `, "/b~1c/2": "3]", "/e": `"e":{}`,
		"/none/deeper": `{"a"`, "/b~1c/7": `"b/c"`, "/a/b": `"a": 1`, "/e/x": `"e"`,
	} {
		if got := doc[Offset([]byte(doc), pointer):]; len(got) < len(want) || got[:len(want)] != want {
			t.Errorf("%q is at %.10q, want %q", pointer, got, want)
		}
	}
	for _, broken := range []string{"", "{", `{"a`, `{"a":`, `[1,`, `{"a":"`} {
		Offset([]byte(broken), "/a/b/1")
	}
}
