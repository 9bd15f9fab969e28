package script_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/script"
)

func TestStub(t *testing.T) {
	for _, tt := range []struct{ name, description, input, output, want string }{
		{"a", "", `{}`, ``, "def a() -> str: ...\n"},
		{"a", "Does \"it\".\nMore.", `{"type":"object","properties":{"x":{"type":"string"},"n":{"type":"integer"}},"required":["n"]}`, ``,
			"def a(n: int, x: str = ...) -> str: \"Does \\\"it\\\".\"\n"},
		{"a", "", `{"type":"object","properties":{"u":{"anyOf":[{"type":"string"},{"type":"null"},{"type":"string"}]},"e":{"enum":["p",2,null]},"t":{"type":["number","boolean"]},"c":{"const":true}}}`, ``,
			`def a(u: str | None = ..., e: Literal["p", 2, None] = ..., t: float | bool = ..., c: Literal[True] = ...) -> str: ...` + "\n"},
		{"a", "", `{"type":"object","properties":{"o":{"type":"object","properties":{"x":{"type":"array","items":{"type":"integer"}},"y":{}},"required":["x"]},"m":{"type":"object","additionalProperties":{"type":"string"}}},"required":["o","m"]}`, ``,
			`def a(o: {"x": list[int], "y": NotRequired[Any]}, m: dict[str, str]) -> str: ...` + "\n"},
		{"a", "", `{"type":"object","properties":{"n":{"$ref":"#/$defs/node"}},"$defs":{"node":{"type":"object","properties":{"next":{"$ref":"#/$defs/node"}}}}}`, `{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}`,
			`def a(n: {"next": NotRequired[dict]} = ...) -> {"ok": bool}: ...` + "\n"},
		{"a.b", "About\nit.", `{"type":"object","properties":{"x":{"type":"string"},"a-b":{"type":"integer"},"class":{"type":"integer"}},"required":["a-b"]}`, ``,
			`# tools["a.b"](x: str = ..., **{"a-b": int, "class": NotRequired[int]}) -> str: About it.` + "\n"},
		{"a", "x\u202ey", `{"type":"object","properties":{"e":{"enum":["a\nb"]}}}`, ``, `def a(e: Literal["a\nb"] = ...) -> str: "x\\u202ey"` + "\n"},
		{"a", "", `true`, ``, "def a() -> str: ...\n"},
	} {
		d := registry.Definition{Name: tt.name, Description: tt.description, InputSchema: json.RawMessage(tt.input), OutputSchema: json.RawMessage(tt.output)}
		if got := script.Stub(&d); got != tt.want {
			t.Errorf("got  %swant %s", got, tt.want)
		}
		if strings.Count(tt.want, "\n") != 1 {
			t.Errorf("%q is not one line", tt.want)
		}
	}
}
