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

func TestFolded(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"ReadMe.TXT", "readme.txt"},
		{".ba\u017fhrc", ".bashrc"},
		{".pro\ufb01le", ".profile"},
		{"\u212aeys", "keys"},
		{"cafe\u0301", "caf\u00e9"},
		{"CAFE\u0301", "caf\u00e9"},
		{"STRA\u1e9eE", "strasse"},
		{"\u03c3\u03af\u03c3\u03c5\u03c6\u03bf\u03c2", "\u03c3\u03af\u03c3\u03c5\u03c6\u03bf\u03c3"},
		{"a\uff0fb", "a\uff0fb"}, // would be another folder
		{"a\u2100b", "a\u2100b"}, // a/c
		{"\uff0a", "\uff0a"},     // would be a pattern
		{"p\u0430th", "p\u0430th"},
	} {
		if got := text.Folded(c.text); got != c.want {
			t.Errorf("Folded(%+q) = %+q, want %+q", c.text, got, c.want)
		}
	}
}

func TestNamesMatchWhateverTheirForm(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"l\u00f6schen", "lo\u0308schen", true},
		{"L\u00d6SCH*", "lo\u0308schen", true},
		{"lo\u0308schen", "L\u00d6SCHEN", true},
		{"?.txt", "\u00df.txt", true},
		{"[\u00e0-\u00ff]", "\u00e9", true},
		{"l\u00f6schen", "loschen", false},
		{"\uff0a", "anything", false},
	} {
		if got := text.MatchNameFold(c.pattern, c.name); got != c.want {
			t.Errorf("MatchNameFold(%+q, %+q) = %v", c.pattern, c.name, got)
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

// The form of a character can be longer than it, such as that of marks that are always decomposed,
// or of a byte that is not UTF-8. No offset in such a form is beyond the text.
func TestAlikeTextOffsetInLongForms(t *testing.T) {
	for _, whole := range []string{"a\u0344\u0344\u0344", "\u0958", "a\u0344\u0344 b", "\x80\xc2", "\xe8\xe8 x"} {
		a := text.NewAlikeText(whole)
		if len(a.Text) <= len(whole) {
			t.Fatalf("the form of %+q is %+q", whole, a.Text)
		}
		last := 0
		for pos := range len(a.Text) + 1 {
			at := a.Offset(pos)
			if at < last || at > len(whole) {
				t.Errorf("%+q: offset %d is at %d, after %d", whole, pos, at, last)
			}
			last = at
		}
	}
}
