package jsonx

import "testing"

func TestUnmarshalErrors(t *testing.T) {
	type inner struct {
		N int8 `json:"n"`
	}
	type whole struct {
		S string         `json:"s"`
		B bool           `json:"b"`
		L []string       `json:"l"`
		M map[string]any `json:"m"`
		F *float64       `json:"f"`
		I inner          `json:"i"`
	}
	for data, want := range map[string]string{
		`{"s":1}`:         `"s" is a number, not a string`,
		`{"s":["a"]}`:     `"s" is a list, not a string`,
		`{"b":"x"}`:       `"b" is a string, not a boolean`,
		`{"l":{}}`:        `"l" is an object, not a list`,
		`{"m":true}`:      `"m" is a boolean, not an object`,
		`{"f":"1"}`:       `"f" is a string, not a number`,
		`{"i":{"n":1.5}}`: `"i.n" is 1.5, not an integer in range`,
		`{"i":{"n":"1"}}`: `"i.n" is a string, not an integer`,
		`[]`:              `it is a list, not an object`,
		`{"s":"a}`:        "unexpected end, at line 1, column 6",
		`{"s":nope}`:      `unexpected word "nope", at line 1, column 6`,
		`{"x":1}`:         `unknown field "x"`,
		`{"s":"a"}`:       "",
	} {
		got := ""
		if err := DecodeKnown([]byte(data), new(whole)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", data, got, want)
		}
		if err := Unmarshal([]byte(data), new(whole)); want != `unknown field "x"` && (err != nil) != (want != "") {
			t.Errorf("%s: %v", data, err)
		}
	}
}
