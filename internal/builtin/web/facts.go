package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolreg/toolreg/internal/builtin/tool"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/text"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// facts are what a reader of a page's text has to know of the page.
type facts struct {
	title    string
	refresh  string // the address to which the page leads by itself
	isLogin  bool
	isCheck  bool   // it checks whether a browser visits it
	scripted bool   // it has scripts
	wants    bool   // it says that it needs JavaScript
	data     string // content that scripts would show, as JSON
}

const (
	maxTitle     = 300
	nextToNoText = 40      // characters; a page with less, and scripts, shows its content by these
	littleText   = 300     // the same of a page that says so
	maxPageData  = 2 << 20 // bytes
	minArticle   = 40      // bytes of data that may be content
)

// readFacts reads the facts of a page. There are none without a tree.
func readFacts(source string, doc *html.Node, at *url.URL) (f facts) {
	if doc == nil {
		return f
	}
	base := baseOf(doc, at)
	password := false
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		switch n.DataAtom {
		case atom.Title:
			if f.title == "" && n.FirstChild != nil && !isInside(n, atom.Svg) {
				f.title = text.ClipRunes(strings.Join(strings.Fields(n.FirstChild.Data), " "), maxTitle)
			}
		case atom.Meta:
			if strings.EqualFold(attribute(n, "http-equiv"), "refresh") && f.refresh == "" {
				f.refresh = refreshTarget(attribute(n, "content"), base)
			}
		case atom.Input:
			password = password || strings.EqualFold(attribute(n, "type"), "password")
		case atom.Noscript:
			f.wants = f.wants || strings.Contains(strings.ToLower(textOf(n)), "javascript")
		case atom.Script:
			f.script(n)
		}
	}
	f.isCheck = isCheck(f.title, source)
	f.isLogin = password && !f.isCheck
	return f
}

// refreshTarget returns the address in the content of a meta refresh, such as "0; url=/x".
func refreshTarget(content string, base *url.URL) string {
	_, target, found := strings.Cut(content, ";")
	target = strings.TrimSpace(target)
	if !found || len(target) < 4 || !strings.EqualFold(target[:3], "url") {
		return ""
	}
	target = strings.Trim(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(target[3:]), "=")), `"'`)
	u, err := base.Parse(target)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return ""
	}
	return u.Redacted()
}

// script notes a script, or the data that it holds for others.
func (f *facts) script(n *html.Node) {
	content := ""
	if n.FirstChild != nil {
		content = strings.TrimSpace(n.FirstChild.Data)
	}
	kind := strings.ToLower(attribute(n, "type"))
	switch {
	case attribute(n, "id") == "__NEXT_DATA__" || attribute(n, "id") == "__NUXT_DATA__":
		f.scripted = true
		if content != "" && len(content) <= maxPageData {
			f.data = content
		}
	case kind == "application/ld+json":
		if f.data == "" && len(content) >= minArticle && len(content) <= maxPageData &&
			slices.ContainsFunc([]string{"articleBody", "description", "recipeInstructions", "reviewBody", "text"},
				func(key string) bool { return strings.Contains(content, `"`+key+`"`) }) {
			f.data = content
		}
	case kind == "" || kind == "module" || strings.HasSuffix(kind, "javascript"):
		f.scripted = true
	}
}

// isCheck reports whether a page only finds out whether a browser visits it.
func isCheck(title, source string) bool {
	title = strings.ToLower(title)
	for _, sign := range []string{
		"just a moment", "attention required! | cloudflare", "checking your browser", "are you a robot",
		"access denied | ", "security check", "verify you are human", "robot check",
	} {
		if strings.HasPrefix(title, sign) {
			return true
		}
	}
	return slices.ContainsFunc([]string{
		"_cf_chl_opt", "/cdn-cgi/challenge-platform/h/", "captcha-delivery.com", "px-captcha",
		"Enable JavaScript and cookies to continue", "awsWafCookieDomainList",
	}, func(sign string) bool { return strings.Contains(source, sign) })
}

// isEmpty reports whether the content of a page is missing from its text, because scripts
// show it.
func (f *facts) isEmpty(content string) bool {
	n := utf8.RuneCountInString(content)
	return f.scripted && (n < nextToNoText || n < littleText && f.wants) || f.data != "" && n < nextToNoText
}

// notes returns what to say before the text of a page.
func (f *facts) notes(content string) string {
	var out strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&out, "["+format+"]\n", args...) }
	head := text.Head(content, 2*maxTitle)
	if f.title != "" && !strings.Contains(strings.Join(strings.Fields(head), " "), f.title) {
		say("title: %s", tool.OneLine(f.title))
	}
	switch {
	case f.isCheck:
		say("this page checks for a browser and does not have the content; look for it elsewhere, such as in an API or a copy")
	case f.isLogin:
		say("this page asks to log in; what it may lead to is not shown")
	case f.refresh != "" && utf8.RuneCountInString(content) < littleText:
		say("the page leads on to %s", tool.OneLine(f.refresh))
	case f.isEmpty(content) && f.data != "":
		say("the page shows its content with JavaScript; what follows is the data in it")
	case f.isEmpty(content):
		say("the page needs JavaScript to show its content, which is not run")
	}
	return out.String()
}

// withData returns the text of a page with the data that its scripts would show.
func (f *facts) withData(content string) string {
	if f.data == "" || f.isLogin || f.isCheck || !f.isEmpty(content) {
		return content
	}
	return strings.TrimSpace(content + "\n\n```json\n" + indentJSON(f.data) + "\n```")
}

const (
	maxIndented  = 1 << 20 // bytes; longer JSON is not indented
	maxJSONDepth = 40      // indenting deeper than this multiplies the size
)

// indentJSON indents JSON. Invalid JSON, and JSON that would grow too large, is
// returned unchanged.
func indentJSON(text string) string {
	raw := []byte(text)
	if len(text) > maxIndented || jsonx.Depth(raw) > maxJSONDepth {
		return text
	}
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return text
	}
	return b.String()
}
