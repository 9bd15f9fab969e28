package process

import (
	"strings"
	"testing"
)

func TestBatchFilesGetTheirArgumentsQuoted(t *testing.T) {
	for _, tt := range []struct{ arg, want string }{
		{`x`, `"x"`},
		{``, `""`},
		{`x&calc`, `"x&calc"`},
		{`a b|c>d^e`, `"a b|c>d^e"`},
		{`"&calc&"`, `"""&calc&"""`},
		{`{"a":"b c"}`, `"{""a"":""b c""}"`},
		{`%PATH%`, `"%%cd:~,%PATH%%cd:~,%"`},
		{`C:\new\`, `"C:\new\\"`},
		{`a\"b\\c`, `"a\\""b\\c"`},
		{`ü\`, `"ü\\"`},
	} {
		got, err := batchLine(`C:\Program Files\npx.cmd`, []string{"-y", tt.arg})
		if want := `cmd.exe /e:on /v:off /d /c ""C:\Program Files\npx.cmd" "-y" ` + tt.want + `"`; got != want || err != nil {
			t.Errorf("batchLine(%q) = %s, %v\nwant %s", tt.arg, got, err, want)
		}
	}
	if _, err := batchLine(`a.cmd`, []string{"x\ncalc"}); err == nil || !strings.Contains(err.Error(), "line break") {
		t.Errorf("error %v for a line break", err)
	}
}

func TestBatchFilesAreKnownByTheirExtension(t *testing.T) {
	for path, want := range map[string]bool{`C:\npx.CMD`: true, `a.bat`: true, `a.exe`: false, `cmd`: false, `a.cmd.exe`: false} {
		if got := isBatch(path); got != want {
			t.Errorf("isBatch(%q) = %v", path, got)
		}
	}
}
