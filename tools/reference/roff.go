package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// footer is the text at the foot of all man pages.
type footer struct{ version, date string }

// page is a man page.
type page struct{ name, section, text string }

// roff builds a man page with the macros of man(7), which groff and mandoc support.
type roff struct {
	strings.Builder
	begun bool // a heading was written, but no text below it
}

// newRoff begins a page. Lines are not justified and words are not hyphenated, because
// most long words are names that readers want to copy.
func newRoff(name, section, short string, f footer) *roff {
	r := &roff{}
	fmt.Fprintf(r, ".TH %s %s %s %s %s\n.nr HY 0\n.nh\n.ad l\n", quote(strings.ToUpper(name)),
		section, strconv.Quote(f.date), quote("toolreg "+f.version), quote("toolreg manual"))
	r.heading("NAME")
	r.text(escape(name) + ` \- ` + escape(short))
	return r
}

func (r *roff) heading(title string)    { r.macro(".SH", title) }
func (r *roff) subheading(title string) { r.macro(".SS", title) }

func (r *roff) macro(name, arg string) {
	fmt.Fprintf(r, "%s %s\n", name, quote(arg))
	r.begun = true
}

// line writes a line of escaped text. A period at its beginning does not start a macro.
func (r *roff) line(text string) {
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	r.WriteString(text + "\n")
	r.begun = false
}

// text writes escaped text that is filled, in short lines.
func (r *roff) text(text string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > 76 {
			if strings.ContainsAny(line[len(line)-1:], ".?!)") {
				line += `\&` // prevent a double space if a sentence ends here
			}
			r.line(line)
			line = ""
		}
		line += " " + word
		line = strings.TrimPrefix(line, " ")
	}
	r.line(line)
}

// paragraph writes escaped text as a paragraph.
func (r *roff) paragraph(text string) {
	r.gap()
	r.text(text)
}

// gap separates what follows from the paragraph before it.
func (r *roff) gap() {
	if !r.begun {
		r.WriteString(".PP\n")
	}
}

// item writes a term and its meaning, indented. Both are escaped text.
func (r *roff) item(term, meaning string) {
	r.WriteString(".TP\n")
	r.line(term)
	if meaning != "" {
		r.text(meaning)
	}
}

// rows writes terms and meanings, which are plain text, in two columns.
func (r *roff) rows(rows []row) {
	width := 0
	for _, row := range rows {
		width = max(width, utf8.RuneCountInString(row.term))
	}
	r.gap()
	r.WriteString(".PD 0\n")
	for _, row := range rows {
		fmt.Fprintf(r, ".TP %d\n", min(width, 24)+2)
		r.line(bold(row.term))
		r.text(prose(row.meaning))
	}
	r.WriteString(".PD\n")
}

// bullet writes escaped text after a mark.
func (r *roff) bullet(mark, text string) {
	fmt.Fprintf(r, ".IP %s 4\n", quote(mark))
	r.text(text)
}

// literal writes lines that are not filled, indented.
func (r *roff) literal(lines string) {
	r.gap()
	r.WriteString(".RS 4\n.EX\n")
	for line := range strings.Lines(lines) {
		r.line(escape(strings.TrimRight(line, "\n")))
	}
	r.WriteString(".EE\n.RE\n")
}

// escape escapes text so that every character is shown and copied as it is: groff would
// turn some ASCII characters into typographic ones. Characters outside of ASCII are written
// as escapes, because not every viewer expects UTF-8.
func escape(text string) string {
	var b strings.Builder
	for _, c := range text {
		switch {
		case c == '\\':
			b.WriteString(`\e`)
		case c == '-':
			b.WriteString(`\-`)
		case c == '\'':
			b.WriteString(`\(aq`)
		case c == '`':
			b.WriteString(`\(ga`)
		case c == '^':
			b.WriteString(`\(ha`)
		case c == '~':
			b.WriteString(`\(ti`)
		case c > 126:
			fmt.Fprintf(&b, `\[u%04X]`, c)
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

// quote returns text as the argument of a macro.
func quote(text string) string { return `"` + strings.ReplaceAll(escape(text), `"`, `""`) + `"` }

// bold returns text as escaped code. Long lists may be broken after a comma.
func bold(text string) string {
	return `\fB` + strings.ReplaceAll(escape(text), ",", `,\:`) + `\fR`
}

func italic(text string) string { return `\fI` + escape(text) + `\fR` }

// longFlag matches flags in a text.
var longFlag = regexp.MustCompile(`--[a-z][a-z-]*`)

// prose returns plain text as escaped text with flags in bold.
func prose(text string) string {
	var b strings.Builder
	at := 0
	for _, m := range longFlag.FindAllStringIndex(text, -1) {
		b.WriteString(escape(text[at:m[0]]) + bold(text[m[0]:m[1]]))
		at = m[1]
	}
	return b.String() + escape(text[at:])
}
