package text_test

import (
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/text"
)

func TestAlike(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"caf\u00e9", "cafe\u0301", true},
		{"it\u2019s", "it's", true},
		{"a \u2013 b", "a - b", true},
		{"4\u202fPM.png", "4 PM.png", true},
		{"\u201cquoted\u201d", `"quoted"`, true},
		{"wait\u2026", "wait...", true},
		{"名\uff1a值", "名:值", true},
		{"p\u0430ypal", "paypal", true},
		{"\u0391\u03a7", "AX", true},
		{"zero\u200bwidth", "zerowidth", true},
		{"\ufeffstart", "start", true},
		{"\ud55c\uae00", "\u1112\u1161\u11ab\u1100\u1173\u11af", true},
		{"x\u00b2", "x2", false},
		{"你好", "您好", false},
		{"caf\u00e9", "cafe", false},
		{"a\tb", "a b", false},
		{"a", "a", false},
	} {
		if got := text.LookSame(c.a, c.b); got != c.same {
			t.Errorf("LookSame(%+q, %+q) = %v", c.a, c.b, got)
		}
	}
}

func TestAlikeTextOffset(t *testing.T) {
	const whole = "cafe\u0301 \u2018x\u2019 z\u200b\u2026 na\u00efve end"
	a := text.NewAlikeText(whole)
	for _, c := range []struct{ find, want string }{
		{"caf\u00e9", "cafe\u0301"},
		{"'x'", "\u2018x\u2019"},
		{"...", "\u200b\u2026"},
		{"na\u00efve", "na\u00efve"},
		{"end", "end"},
	} {
		i := strings.Index(a.Text, c.find)
		if i < 0 {
			t.Errorf("%q is not in %q", c.find, a.Text)
			continue
		}
		got := whole[a.Offset(i):a.Offset(i+len(c.find))]
		if strings.TrimPrefix(got, "\u200b") != strings.TrimPrefix(c.want, "\u200b") {
			t.Errorf("%q is at %+q, want %+q", c.find, got, c.want)
		}
	}
	if got := a.Offset(len(a.Text)); got != len(whole) {
		t.Errorf("the end is at %d, want %d", got, len(whole))
	}
}
