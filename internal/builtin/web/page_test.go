package web

import (
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
)

func TestNotesOnPages(t *testing.T) {
	long := "<p>" + strings.Repeat("words of the page ", 30)
	const script = "<script src=/app.js></script>"
	for page, want := range map[string]string{
		"<title>A  page</title>" + long:                                                                   "[title: A page]\n",
		"<title>A page</title><h1>A page</h1>" + long:                                                     "",
		"<svg><title>icon</title></svg>" + long:                                                           "",
		"<title>App</title><div id=root></div>" + script:                                                  "[title: App]\n[the page needs JavaScript to show its content, which is not run]\n",
		"<p>" + strings.Repeat("x ", 50) + "<noscript>Please enable JavaScript</noscript>" + script:       "[the page needs JavaScript to show its content, which is not run]\n",
		"<p>" + strings.Repeat("x ", 50) + script:                                                         "",
		`<div id=__next></div><script id=__NEXT_DATA__ type=application/json>{"a":1}</script>`:            "[the page shows its content with JavaScript; what follows is the data in it]\n",
		`<script type=application/ld+json>{"@type":"Article","articleBody":"words of it"}</script>`:       "[the page shows its content with JavaScript; what follows is the data in it]\n",
		`<script type=application/ld+json>{"@type":"Recipe","recipeInstructions":["Mix."]}</script>`:      "[the page shows its content with JavaScript; what follows is the data in it]\n",
		`<script type=application/ld+json>{"@type":"Organization","name":"a name that is long"}</script>`: "",
		"<form><input type=Password></form>" + long:                                                       "[this page asks to log in; what it may lead to is not shown]\n",
		"<title>Just a moment...</title>" + script:                                                        "[title: Just a moment...]\n[this page checks for a browser and does not have the content; look for it elsewhere, such as in an API or a copy]\n",
		"<script>window._cf_chl_opt={}</script>":                                                          "[this page checks for a browser and does not have the content; look for it elsewhere, such as in an API or a copy]\n",
		`<meta http-equiv=Refresh content="0; URL='/next'">`:                                              "[the page leads on to https://example.com/next]\n",
		`<base href="https://other.example/a/"><meta http-equiv=refresh content="0;url=b">`:               "[the page leads on to https://other.example/a/b]\n",
		`<meta http-equiv=refresh content="0;url=javascript:x()">`:                                        "",
		`<meta http-equiv=refresh content="30">` + long:                                                   "",
		"<script>plain()</script>" + long:                                                                 "",
		strings.Repeat("<b>", maxMarkup+1) + "<title>t</title>":                                           "",
	} {
		f := readFacts(page, parse(page), &url.URL{Scheme: "https", Host: "example.com"})
		if got := f.notes(htmlText(page)); got != want {
			t.Errorf("%.80s: %q, want %q", page, got, want)
		}
	}
}

func TestDataOfPages(t *testing.T) {
	const page = `<div id=__next></div><script id=__NEXT_DATA__ type=application/json>{"a":[1]}</script>`
	at := &url.URL{Scheme: "https", Host: "example.com"}
	f := readFacts(page, parse(page), at)
	if got, want := f.withData(""), "```json\n{\n  \"a\": [\n    1\n  ]\n}\n```"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	long := strings.Repeat("words of the page ", 30)
	if got := f.withData(long); got != long {
		t.Errorf("data is added to a page with content: %q", got)
	}
	f = readFacts("<input type=password>"+page, parse("<input type=password>"+page), at)
	if got := f.withData(""); got != "" {
		t.Errorf("the data of a login page is shown: %q", got)
	}
}

func TestMarkdownOfCodeAndLists(t *testing.T) {
	at := &url.URL{Scheme: "https", Host: "example.com"}
	for page, want := range map[string]string{
		"<table class=highlighttable><tr><td class=linenos><pre>1\n2</pre></td><td class=code><pre>a = 1\nb = 2\n</pre></td></tr></table>":                                              "```\na = 1\nb = 2\n```",
		"<table><tr><td class='gutter'>1</td><td><pre><code>x</code></pre></td></tr></table>":                                                                                           "```\nx\n```",
		"<pre><code><span class='lineno'>1 </span>x = 1\n<span class='lineno'>2 </span>y\n</code></pre>":                                                                                "```\nx = 1\ny\n```",
		"<pre><code><span class=line><span class=ln>1</span>x = 1</span>\n<span class=line><span class=ln> 2</span>y</span>\n</code></pre>":                                             "```\nx = 1\ny\n```",
		"<pre><span style='color:#7f7f7f;user-select: none'>10</span>x</pre>":                                                                                                           "```\nx\n```",
		"<table><tr>\n  <td class=blob-num data-line-number=1></td>\n  <td>if x {</td></tr><tr><td data-line-number=2></td><td>  y</td></tr></table>":                                   "```\nif x {\n  y\n```",
		"<pre><code><table class=hljs-ln><tr><td class=hljs-ln-line data-line-number=1></td><td>x\n</td></tr><tr><td class=hljs-ln-numbers></td><td>  y</td></tr></table></code></pre>": "```\nx\n  y\n```",
		"<table><tr><td class=lineno>1</td><td>a</td><td>b</td></tr></table>":                                                                                                           "| a | b |\n|---|---|",
		"<p><span class=ln>Lane</span> <span class=num>1</span></p>":                                                                                                                    "Lane 1",
		"<div><button class='btn-copy'>Copy</button><pre>x</pre></div>":                                                                                                                 "```\nx\n```",
		"<div><pre>x</pre><button aria-label='Copy code'><svg></svg></button></div>":                                                                                                    "```\nx\n```",
		"<ul><li><input type=checkbox checked> done</li><li><input type=checkbox> open</li></ul>":                                                                                       "- [x] done\n- [ ] open",
		"a<p hidden>no</p><p style='color:red; display: none'>no</p><span style='visibility:hidden'>no</span>":                                                                          "a",
		"<button>Send</button> a":                      "Send a",
		"<table><tr><th>a<tr><td><pre>x</pre></table>": "| a |\n|---|\n| ```<br />x<br />``` |",
	} {
		got, err := convert(parse(page), at)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s (-want +got):\n%s%v", page, diff, err)
		}
	}
}

func TestBlanksAroundAddresses(t *testing.T) {
	for _, raw := range []string{" https://example.com/x ", "\nhttps://example.com/x\t", "https://example.com/x\r\n"} {
		c, err := prepareFetch(tooltest.Call(tooltest.JSON(t, map[string]string{"url": raw})))
		if err != nil || c.url.String() != "https://example.com/x" {
			t.Errorf("%q: %v", raw, err)
		}
	}
}

// What a browser does not show is in neither form of a page.
func TestHiddenText(t *testing.T) {
	at := &url.URL{Scheme: "https", Host: "example.com"}
	for _, attribute := range []string{
		"hidden", `hidden=""`, "style='display: none !important'", "style='color: red; DISPLAY:NONE'", "style='visibility:hidden'", "style='opacity: 0.0'", "style='font-size:0px'",
		"style='position:absolute; left:-9999px'", "style='text-indent: -10000em'", "style='height:0;overflow:hidden'", "style='clip-path: inset(50%)'", "style='clip: rect(0 0 0 0)'",
		"style='color:transparent'", "aria-hidden=true", `aria-hidden="TRUE"`,
	} {
		page := "<body><p>seen</p><div " + attribute + ">un<b>seen</b></div><ul><li " + attribute + ">unseen<li>also</ul><!-- unseen --></body>"
		if got := htmlText(page); strings.Contains(got, "unseen") || !strings.Contains(got, "also") {
			t.Errorf("%s: as text: %q", attribute, got)
		}
		if got, err := convert(parse(page), at); strings.Contains(got, "un") || !strings.Contains(got, "also") || err != nil {
			t.Errorf("%s: as Markdown: %q, %v", attribute, got, err)
		}
	}
	for _, attribute := range []string{
		"hidden=until-found", "style='opacity:0.5'", "style='font-size:10px'", "style='left:-99px'", "style='height:0'", "style='overflow:hidden'", "style='display:block'", "aria-hidden=false",
		"style='width:100%;overflow:hidden'", "class=hidden-xs",
	} {
		if got := htmlText("<p " + attribute + ">seen"); got != "seen" {
			t.Errorf("%s: %q", attribute, got)
		}
	}
	for page, want := range map[string]string{
		"<dialog>unseen</dialog><dialog open>seen</dialog>":                              "seen",
		"<input list=x><datalist id=x><option>unseen</datalist><canvas>unseen</canvas>a": "a",
		"<div aria-hidden=true><h1>Page</h1>behind a dialog</div>":                       "Page\n\nbehind a dialog",
		"<ul><li><input type=checkbox checked>done<li><input type=checkbox>open</ul>":    "- [x] done\n- [ ] open",
		strings.Repeat("<div>", 600) + "deep":                                            "deep",
	} {
		if got := htmlText(page); got != want {
			t.Errorf("%.80s: %q, want %q", page, got, want)
		}
	}
}
