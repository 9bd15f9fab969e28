package markdown

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/ui"
)

// readable writes escape sequences as short marks: <b> for ESC[1m and so on.
var readable = strings.NewReplacer("\x1b[0m", "</>", "\x1b[1m", "<b>", "\x1b[2m", "<dim>", "\x1b[3m", "<i>", "\x1b[1;3m", "<bi>",
	"\x1b[9m", "<s>", "\x1b[1;4m", "<bu>", "\x1b[4m", "<u>", "\x1b[31m", "<red>", "\x1b[32m", "<green>", "\x1b[34m", "<blue>", "\x1b[36m", "<cyan>",
	"\x1b[7;31m", "<red!>", "\x1b[7;32m", "<green!>", "\x1b[4;36m", "<cyan u>", "\x1b[4;34m", "<blue u>", "\x1b[1;3;4m", "<biu>", "\x1b[1;36m", "<bold cyan>")

func TestRender(t *testing.T) {
	for _, tt := range []struct{ name, text, want, plain string }{
		{"heading", "# A *b*\ntext\n\n## C ##", "<bu># A </><biu>b</>\ntext\n\n<b>## C</>\n", "# A *b*\ntext\n\n## C\n"},
		{"emphasis", "*a* **b** ***c*** ~~d~~ snake_case_x 2*3*4 \\*e\\*", "<i>a</> <b>b</> <bi>c</> <s>d</> snake_case_x 2<i>3</>4 *e*\n",
			"*a* **b** ***c*** ~~d~~ snake_case_x 2*3*4 *e*\n"},
		{"marks that pair with nothing", "*.go **.ts 5 * 3 __init__.py a_ _b", "*.go **.ts 5 * 3 <b>init</>.py a_ _b\n", "*.go **.ts 5 * 3 __init__.py a_ _b\n"},
		{"code span", "run `a *b* ``c` or ``d`e``, `open", "run <cyan>a *b* ``c</> or <cyan>d`e</>, `open\n", "run `a *b* ``c` or ``d`e``, `open\n"},
		{"links", `[text](https://a.b/x_y_z "t") <https://c.d> ![](e.png) [f][1] [g](<h i>) [](j) [k]()`,
			"<u>text</><blue> (https://a.b/x_y_z \"t\")</> <blue>https://c.d</> <u>image</><blue> (e.png)</> [f][1] <u>g</><blue> (h i)</> <blue>j</> [k]()\n",
			"text (https://a.b/x_y_z \"t\") https://c.d image (e.png) [f][1] g (h i) j [k]()\n"},
		{"a link whose text is another URL", "[https://good](https://evil)", "<u>https://good</><blue> (https://evil)</>\n", "https://good (https://evil)\n"},
		{"lists", "- a\n  more\n  1. b\n  2. c\n- [x] d\n- [ ] e\n\n7) f\n7) g",
			"• a\n  more\n  1. b\n  2. c\n<green>[x] </>d\n[ ] e\n\n7) f\n8) g\n", "• a\n  more\n  1. b\n  2. c\n[x] d\n[ ] e\n\n7) f\n8) g\n"},
		{"a list within a list", "* a\n    * b\n        * c\n* d", "• a\n  ◦ b\n    ▪ c\n• d\n", "• a\n  ◦ b\n    ▪ c\n• d\n"},
		{"quote", "> a\n> > b\n> - c", "<dim>│ </>a\n<dim>│ │ </>b\n<dim>│ </>• c\n", "│ a\n│ │ b\n│ • c\n"},
		{"fenced code", "```go\nx := *p // `y`\n\n\tif\n```\ny", "    <cyan>x := *p // `y`</>\n\n    <cyan>    if</>\ny\n", "    x := *p // `y`\n\n        if\ny\n"},
		{"a fence that is not closed", "~~~\na\n```", "    <cyan>a</>\n    <cyan>```</>\n", "    a\n    ```\n"},
		{"indented code", "a\n\n    b *c*\n\n    d\n", "a\n\n    <cyan>b *c*</>\n\n    <cyan>d</>\n", "a\n\n    b *c*\n\n    d\n"},
		{"fenced diff", "```diff\n-a\n+b\n```", "    -a\n    +b\n", ""},
		{"diff", "Changes:\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n- the old line\n+ the new line\n c\n*end*",
			"Changes:\n<b>--- a/x</>\n<b>+++ b/x</>\n<cyan>@@ -1,2 +1,2 @@</>\n<red>- the </><red!>old</><red> line</>\n<green>+ the </><green!>new</><green> line</>\n c\n<i>end</>\n", ""},
		{"a listing keeps its lines", "[FILE] a_b\n[DIR]  c\n  indented\nName:  x", "[FILE] a_b\n[DIR]  c\n  indented\nName:  x\n", "[FILE] a_b\n[DIR]  c\n  indented\nName:  x\n"},
		{"table", "| a | *b* |\n|--|:-:|\n| 1\\|2 | `x` |\n| 日本 | y | z |\n\nend",
			"<b>a</>   <dim> │ </>  <bi>b</>\n<dim>─────┼──────</>\n1|2 <dim> │ </>  <cyan>x</>\n日本<dim> │ </>y | z\n\nend\n", "a    │  *b*\n─────┼──────\n1|2  │  `x`\n日本 │ y | z\n\nend\n"},
		{"narrow: rule", "a\n\n---\nb", "a\n\n<dim>" + strings.Repeat("─", 30) + "</>\nb\n", "a\n\n" + strings.Repeat("─", 30) + "\nb\n"},
		{"narrow: underlined headings", "A\n===\nB\n--\nc\nd\n---", "<bu># A</>\n\n<b>## B</>\n\n<b>## c</>\n<b>d</>\n", "# A\n\n## B\n\n## c\nd\n"},
		{"entities", "a &lt;b&gt; &#27;[31m &#x202e; &nope; &amp", `a <b> \x1b[31m \u202e &nope; &amp` + "\n", `a <b> \x1b[31m \u202e &nope; &amp` + "\n"},
		{"narrow: words are not broken", "see https://example.com/a/very/long/address and so on, as it is", "see\nhttps://example.com/a/very/long/address\nand so on, as it is\n", "see\nhttps://example.com/a/very/long/address\nand so on, as it is\n"},
		{"narrow: wide characters break anywhere", "日本語日本語日本語日本語日本語日本語", "日本語日本語日本語日本語日本語\n日本語\n", "日本語日本語日本語日本語日本語\n日本語\n"},
		{"narrow: an item's further rows are indented", "- one two three four five six seven", "• one two three four five six\n  seven\n", "• one two three four five six\n  seven\n"},
		{"JSON is data", "[1,\n2]", "[1,\n2]\n", "[1,\n2]\n"},
		{"an image in a link", "[![b](c)](d)", "<u>b</><blue u> (c)</><blue> (d)</>\n", "b (c) (d)\n"},
		{"a break", "a<br>b", "a\nb\n", "a\nb\n"},
		{"a line that is lazy", "- a\n    - b\n  c\n> d\ne", "• a\n  ◦ b\n    c\n<dim>│ </>d\n<dim>│ </>e\n", "• a\n  ◦ b\n    c\n│ d\n│ e\n"},
		{"an indented line within an item", "- a\n    b\n\n  c", "• a\n    b\n\n  c\n", "• a\n    b\n\n  c\n"},
		{"a diff within a quote", "> --- a\n> +++ b\n> @@ -1 +1 @@\n>  x\ny", "<dim>│ </><b>--- a</>\n<dim>│ </><b>+++ b</>\n<dim>│ </><cyan>@@ -1 +1 @@</>\n<dim>│ </> x\ny\n", ""},
		{"a table below its title", "t\n|a|`b\\|c`|\n|-|-|\nd", "t\n<b>a</><dim> │ </><bold cyan>b|c</>\n<dim>──┼────</>\nd<dim> │ </>\n", "t\na │ `b|c`\n──┼──────\nd │\n"},
		{"a code span over lines, with blanks", "a `` b`\n c `` d", "a <cyan>b`</>\n<cyan>c</> d\n", "a `` b`\nc `` d\n"},
		{"addresses with escapes", `[a](b\)&amp;c) <d@e.f>`, "<u>a</><blue> (b)&c)</> <blue>d@e.f</>\n", "a (b)&c) d@e.f\n"},
		{"addresses and labels with tags and breaks", "[a<br>b](c<br>d \"e\nf\")", "<u>a</>\n<u>b</><blue> (c<br>d \"e f\")</>\n", "a\nb (c<br>d \"e f\")\n"},
		{"no check box", "- [x) a\n- [x]b\n- [y] c", "• [x) a\n• [x]b\n• [y] c\n", "• [x) a\n• [x]b\n• [y] c\n"},
		{"HTML is text", "<div a=\"b\">*c*</div>\n<!-- d -->", "<div a=\"b\"><i>c</></div>\n<!-- d -->\n", "<div a=\"b\">*c*</div>\n<!-- d -->\n"},
		{"quotes that are too deep", strings.Repeat("> ", maxDepth+1) + "a\n\n# b", "<dim>" + strings.Repeat("│ ", maxDepth) + "</>> a\n\n<bu># b</>\n", strings.Repeat("│ ", maxDepth) + "> a\n\n# b\n"},
		{"lists that are too deep", strings.Repeat("- ", maxDepth+1) + "a\n- b", strings.Repeat("• ◦ ▪ ", maxDepth/3) + "- a\n• b\n", strings.Repeat("• ◦ ▪ ", maxDepth/3) + "- a\n• b\n"},
		{"nothing", "", "", ""},
		{"no marks of its own", "```\n```\n-", "•\n", "•\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := Options{Width: 100, Color: true}
			if strings.HasPrefix(tt.name, "narrow: ") {
				o.Width = 30
			}
			got := readable.Replace(Render(tt.text, o))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("in colour (-want +got):\n%s", diff)
			}
			if tt.plain == "" {
				return
			}
			o.Color = false
			if diff := cmp.Diff(tt.plain, Render(tt.text, o)); diff != "" {
				t.Errorf("plain (-want +got):\n%s", diff)
			}
		})
	}
}

func TestProse(t *testing.T) {
	text := "This paragraph was broken by its author at seventy columns or so, as\npeople do, and is to be read on a screen that has fewer columns than\nthat."
	want := "This paragraph was broken by its author at\nseventy columns or so, as people do, and is to\nbe read on a screen that has fewer columns\nthan that.\n"
	if diff := cmp.Diff(want, Render(text, Options{Width: 46})); diff != "" {
		t.Errorf("narrow (-want +got):\n%s", diff)
	}
	if got := Render(text, Options{Width: 80}); got != text+"\n" {
		t.Errorf("wide: %q", got)
	}
	log := "2026-11-21 10:00:00 the first thing happened, and it took quite a while to\nbe done\n2026-11-21 10:00:01 the second thing"
	if got := Render(log, Options{Width: 46}); !strings.Contains(got, "\nbe done\n") {
		t.Errorf("a listing was joined: %q", got)
	}
}

func TestNarrowTable(t *testing.T) {
	text := "| name | what it does |\n|---|---|\n| read_file | reads a file, or a part of it, and says what was cut |"
	want := `name      │ what it does
──────────┼───────────────────
read_file │ reads a file, or a
          │ part of it, and
          │ says what was cut
`
	if diff := cmp.Diff(want, Render(text, Options{Width: 30})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	wide := strings.Repeat("|a", maxColumns+1) + "|\n" + strings.Repeat("|-", maxColumns+1) + "|\n"
	if got := Render(wide, Options{Width: 1000}); got != wide {
		t.Errorf("a table of many columns: %q", got)
	}
	many := strings.Repeat("| a ", 20) + "|\n" + strings.Repeat("|---", 20) + "|"
	if got := Render(many, Options{Width: 30}); got != many+"\n" {
		t.Errorf("a table without room: %q", got)
	}
}

// hostile returns texts that take excessive time or stack in some Markdown parsers.
func hostile() map[string]string {
	const n = 100_000
	return map[string]string{
		"quotes": strings.Repeat(">", n) + "a", "brackets": strings.Repeat("[", n), "links": strings.Repeat("[a](", n/4), "pairs": strings.Repeat("[", n/2) + strings.Repeat("](b)", n/4),
		"stars": strings.Repeat("*a ", n/3), "both": strings.Repeat("a**b_c*", n/7), "ticks": strings.Repeat("`a``b```c", n/9), "bullets": strings.Repeat("- ", n/2),
		"items": strings.Repeat("- a\n", n/4), "blank items": strings.Repeat("-\n\n\n", n/4), "tables": strings.Repeat("|a|\n|-|\n", n/8), "wide table": strings.Repeat("|a", n/2) + "\n" + strings.Repeat("|-", n/2),
		"entities": strings.Repeat("&a", n/2), "angles": strings.Repeat("<a", n/2), "diffs": strings.Repeat("--- a\n+++ b\n@@ -1 +1 @@\n", n/30), "hunks": "--- a\n+++ b\n@@ -1,999999999 +1,999999999 @@\n" + strings.Repeat("-\n", n/4) + strings.Repeat("+\n", n/4),
		"deep": deep(300), "joined": "a" + strings.Repeat("\u0301", n/2), "one word": strings.Repeat("x", n), "words": strings.Repeat("x ", n/2), "closers": strings.Repeat("a*", n/2), "tildes": strings.Repeat("~~a ", n/4),
	}
}

func deep(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat("  ", i) + "- a\n")
	}
	return b.String()
}

func TestHostileTextIsBounded(t *testing.T) {
	for name, text := range hostile() {
		start := time.Now()
		got := Render(text, Options{Width: 40, Color: true})
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("%s: %s", name, d)
		}
		if len(got) > 60*len(text) {
			t.Errorf("%s: %d bytes of %d", name, len(got), len(text))
		}
	}
}

func TestLongParagraphKeepsItsMarks(t *testing.T) {
	long := strings.Repeat("*a* `b`\n", maxInline/8+1)
	want := long + "\n\x1b[3mc\x1b[0m\n"
	if got := Render(long+"\n*c*", Options{Color: true}); got != want {
		t.Errorf("got %.100q … %q", got, got[max(len(got)-20, 0):])
	}
	table := "|a|\n|-|\n|" + strings.Repeat("*b*", maxInline/3) + "|\n"
	if got := Render(table, Options{Color: true}); got != table {
		t.Errorf("a table with a long line: %.100q", got)
	}
}

func TestLongTextIsPlain(t *testing.T) {
	text := strings.Repeat("# *a* \x1b\n", maxText/7)
	if got := Render(text, Options{Color: true}); got != ui.Visible(text) {
		t.Errorf("%.100q", got)
	}
}

// sequences removes the escape sequences of styles from a text.
func sequences(text string) string {
	for {
		before, rest, ok := strings.Cut(text, "\x1b[")
		if !ok {
			return text
		}
		at := strings.IndexFunc(rest, func(r rune) bool { return r != ';' && (r < '0' || r > '9') })
		if at < 0 || rest[at] != 'm' {
			return text
		}
		text = before + rest[at+1:]
	}
}

// FuzzRender looks for control characters in the output, and for lost words.
func FuzzRender(f *testing.F) {
	for _, s := range []string{"# a\n- [x] b\n> c `d` **e** [f](g)\n\n|a|b|\n|-|-|\n|c|d|\n", "\x1b]52;c;x\x07 \u202e &#27;", "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n", "日本 *語*\\\n`` ` ``", "1. a\n\n   b\n\n\tc"} {
		f.Add(s, true, 30)
		f.Add(s, false, 5)
	}
	f.Fuzz(func(t *testing.T, text string, color bool, width int) {
		got := Render(text, Options{Width: width % 300, Color: color})
		if !utf8.ValidString(got) {
			t.Fatalf("%q is not UTF-8", got)
		}
		bare := sequences(got)
		if strings.Contains(got, "\x1b") && !color || bare != ui.Visible(bare) {
			t.Fatalf("control characters in %q", got)
		}
		if got != "" && !strings.HasSuffix(got, "\n") {
			t.Fatalf("no newline at the end of %q", got)
		}
		// All letters and digits are kept, in their original order.
		if !color && !strings.ContainsAny(text, "&<|()`\\") {
			want, have := letters(strings.ToLower(ui.Visible(strings.ReplaceAll(text, "\r\n", "\n")))), letters(strings.ToLower(got))
			if len(have) < len(want)-strings.Count(text, "0")-strings.Count(text, "1") && !strings.ContainsAny(text, "~[0123456789") {
				t.Fatalf("%q became %q", want, have)
			}
		}
	})
}

func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r
		}
		return -1
	}, s)
}

func BenchmarkRender(b *testing.B) {
	text := strings.Repeat("## A heading\n\nSome *text* with `code` and [a link](https://example.com/x), long enough to be broken once or twice on the way.\n\n- an item\n- [x] another\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```go\nfunc main() {}\n```\n\n", 20)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Render(text, Options{Width: 80, Color: true})
	}
}
