package web

import (
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestHostilePages converts pages that are made to exhaust memory; the size of
// the result is bounded.
func TestHostilePages(t *testing.T) {
	at := &url.URL{Scheme: "https", Host: "example.com"}
	for name, page := range map[string]string{
		"deep":         strings.Repeat("<div>", 100_000) + "deep",
		"deep lists":   strings.Repeat("<ul><li>", 250) + "x",
		"deep quotes":  strings.Repeat("<blockquote>", 500) + "x",
		"bold":         strings.Repeat("<b>x", 400),
		"colspan":      "<table>" + strings.Repeat(`<tr><td colspan=1000000000 rowspan=1000000000>x</td></tr>`, 1000) + "</table>",
		"many spans":   "<table>" + strings.Repeat(`<tr><td colspan=90 rowspan=90>x</td></tr>`, 1000) + "</table>",
		"wide cells":   "<table><tr><td>" + strings.Repeat("w", 100_000) + "</td></tr>" + strings.Repeat("<tr><td>x</td></tr>", 5000) + "</table>",
		"wide rows":    "<table><tr>" + strings.Repeat("<td>x", 5_000) + "</tr>" + strings.Repeat("<tr><td>y</td></tr>", 20) + "</table>",
		"short rows":   "<table><tr>" + strings.Repeat("<th>x", 2_000) + strings.Repeat("<tr><td>y", 20_000),
		"nested rows":  strings.Repeat("<table><tr><td>", 50) + strings.Repeat("<td>x", 2_000) + strings.Repeat("<tr><td>y", 20_000),
		"spanned rows": "<table><tr><th colspan=9000>x" + strings.Repeat("<tr><td>y", 20_000),
		"unclosed":     strings.Repeat("<a href='x'><table><tr><td>", 100),
		"attributes":   "<p " + strings.Repeat("a=b ", 100_000) + ">x",
		"comment":      "<!--" + strings.Repeat("-", 100_000),
		"script":       "<script>" + strings.Repeat("</scrip", 100_000),
		"links":        strings.Repeat(`<a href="[](<>)">]</a>`, 10_000),
		"entities":     strings.Repeat("&amp;&#x202e;", 50_000),
		"escapes":      strings.Repeat("*_`#[]", 50_000),
		"broken bytes": strings.Repeat("\xff\x00<p>", 10_000),
	} {
		text, err := markdown(t.Context(), page, parse(page), at)
		if err != nil || len(text) > 20*len(page)+2_000_000 {
			t.Errorf("%s: %d bytes of %d, %v", name, len(text), len(page), err)
		}
		if plain := htmlText(page); len(plain) > 2*len(page) {
			t.Errorf("%s: %d bytes of text of %d", name, len(plain), len(page))
		}
	}
	deep := strings.Repeat("<div>", 100_000) + "deep"
	if text, err := markdown(t.Context(), deep, parse(deep), at); text != "deep" || err != nil {
		t.Errorf("too deep for Markdown: %.100q, %v", text, err)
	}
}

func TestIndentedJSONIsBounded(t *testing.T) {
	for _, text := range []string{strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "[" + strings.Repeat("1,", 1<<20) + "1]"} {
		if got := indentJSON(text); got != text {
			t.Errorf("%d bytes became %d", len(text), len(got))
		}
	}
	if got := indentJSON(`{"a":"]]]]"}`); got != "{\n  \"a\": \"]]]]\"\n}" {
		t.Errorf("%q", got)
	}
}

func TestMarkdown(t *testing.T) {
	at := &url.URL{Scheme: "https", Host: "example.com"}
	for page, want := range map[string]string{
		"<a>a</a> <a href='javascript:f()'>b</a> <a name=x>c</a>":                                       "a b c",
		"<a href='/x'>a</a> <a href=''>b</a>":                                                           "[a](https://example.com/x) [b](https://example.com)",
		"<details><summary>More</summary>text</details>":                                                "More\n\ntext",
		"a<template><p>no</template><select><option>x<option>y</select> b":                              "a b",
		"a <svg><title>no</title><text>no</text></svg>b<object>no</object>":                             "a b",
		"<h2>a<a href='#a'></a></h2>":                                                                   "## a",
		"10<sup>6</sup> e<sup> x</sup> 1<sup>st</sup><sup><a href='#n'>1</a></sup>":                     "10^6 e^x 1st[1](#n)",
		"<table><tr><th>a<th>b<tr><td><p>1</p><p>2</p><td>see<ul><li>x</li> <li><p>y</p></ul>z</table>": "| a | b |\n|---|---|\n| 1  <br />2 | see  <br />• x  <br />• y  <br />z |",
		"<table><tr><td>a<td>b<tr><td><ul><li>x</ul><td>c</table>":                                      "a\n\nb\n\n- x\n\nc",
		"<table><tr><td><h1>t</h1><td><table><tr><th>a<tr><td>1</table></table>":                        "# t\n\n| a |\n|---|\n| 1 |",
	} {
		if got, err := convert(parse(page), at); got != want || err != nil {
			t.Errorf("%s: %q, want %q; %v", page, got, want, err)
		}
	}
}

func TestTypeOfText(t *testing.T) {
	for body, want := range map[string]string{"<!doctype html><p>Sign in": "text/html", "not found": "text/plain", "\x89PNG\r\n\x1a\n\x00": "image/png", "\xff\xd8\xff\x00": "image/jpeg", "\x00\x01": "image/png", "\n%PDF-1.4 \xe2\xe3": "image/png"} {
		if kind, _ := contentKind(&webPage{Type: "image/png", Body: []byte(body)}); kind != want {
			t.Errorf("%q sent as image/png is %s, want %s", body, kind, want)
		}
	}
}

func TestHTMLText(t *testing.T) {
	for page, want := range map[string]string{
		"a<br>b<br/>c":        "a\nb\nc",
		"<p>a<p>b":            "a\n\nb",
		"a<b>b</b> <i>c</i>d": "ab cd",
		"<svg><svg></svg><text>no</text></svg>yes":             "yes",
		"<template><p>no</template>yes<noscript>no</noscript>": "yes",
		"<script/>no</script>yes<style/>no</style>":            "yes",
		"<svg/>yes<script/><svg/>no</script>":                  "yes",
		"<textarea><p>no</textarea>x":                          "x",
		"<dl><dt>a<dd>b</dl>c":                                 "a\nb\n\nc",
		"a</pre> b":                                            "a b",
		"&lt;b&gt;":                                            "<b>",
		"10<sup>6</sup>m<sup><a>1</a></sup><sup>st</sup>":      "10^6m1st",
		"a<details><summary>b</summary>c</details>d":           "a\nb\nc\nd",
	} {
		if got := htmlText(page); got != want {
			t.Errorf("%s: %q, want %q", page, got, want)
		}
	}
}

func FuzzRender(f *testing.F) {
	f.Add("text/html", []byte(sampleHTML))
	f.Add("text/html", []byte("<table><td rowspan=3 colspan=2><table><td>"))
	f.Add("application/json; charset=utf-16", []byte(`{"a":[`))
	f.Add("text/plain; charset=x", []byte("\xff\xfe\x00"))
	at := &url.URL{Scheme: "https", Host: "example.com"}
	f.Fuzz(func(t *testing.T, kind string, body []byte) {
		p := &webPage{Type: kind, Body: body, Status: 200, url: at, Address: at.String()}
		for _, format := range []string{"markdown", "text", "raw"} {
			r, err := render(t.Context(), p, format)
			if err == nil && r.media == nil && !utf8.ValidString(r.text) {
				t.Errorf("%s of %q gives broken text %q", format, body, r.text)
			}
		}
	})
}

func BenchmarkMarkdown(b *testing.B) {
	at := &url.URL{Scheme: "https", Host: "example.com"}
	page := strings.Repeat(sampleHTML, 100)
	b.SetBytes(int64(len(page)))
	for b.Loop() {
		if _, err := convert(parse(page), at); err != nil {
			b.Fatal(err)
		}
	}
}
