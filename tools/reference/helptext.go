package main

import (
	"regexp"
	"strings"
)

// block is a part of a help text: a heading, a paragraph, rows of two columns, or literal lines.
type block struct {
	heading   string
	paragraph string
	rows      []row
	literal   string
}

// row is a term and what it means.
type row struct{ term, meaning string }

// columns matches an indented line of two columns. Flags without a short form are indented further.
var columns = regexp.MustCompile(`^ {2}(?: {4})?(\S.*?) {2,}(\S.*)$`)

// parseHelp splits a help text into blocks. Indented lines are rows if each of them has two
// columns or continues the second one, and literal lines otherwise.
func parseHelp(text string) []block {
	var blocks []block
	for chunk := range strings.SplitSeq(strings.Trim(text, "\n"), "\n\n") {
		parts := splitIndented(strings.Split(chunk, "\n"))
		for i, lines := range parts {
			title, isTitle := strings.CutSuffix(lines[0], ":")
			switch {
			case isTitle && i == 0 && len(lines) == 1 && len(parts) > 1:
				blocks = append(blocks, block{heading: title})
			case !strings.HasPrefix(lines[0], "  "):
				blocks = append(blocks, block{paragraph: strings.Join(lines, " ")})
			default:
				if rows := parseRows(lines); rows != nil {
					blocks = append(blocks, block{rows: rows})
				} else {
					blocks = append(blocks, block{literal: unindent(strings.Join(lines, "\n"))})
				}
			}
		}
	}
	return blocks
}

// splitIndented divides lines where the indentation begins or ends.
func splitIndented(lines []string) [][]string {
	var parts [][]string
	for i, line := range lines {
		if i == 0 || strings.HasPrefix(line, "  ") != strings.HasPrefix(lines[i-1], "  ") {
			parts = append(parts, nil)
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], line)
	}
	return parts
}

func parseRows(lines []string) []row {
	var rows []row
	for _, line := range lines {
		m := columns.FindStringSubmatch(line)
		switch {
		case m != nil:
			rows = append(rows, row{m[1], m[2]})
		case strings.HasPrefix(line, "      ") && len(rows) > 0:
			rows[len(rows)-1].meaning += " " + strings.TrimSpace(line)
		default:
			return nil
		}
	}
	return rows
}

// unindent removes the two spaces at the beginning of lines of help texts.
func unindent(text string) string {
	return strings.TrimPrefix(strings.ReplaceAll(text, "\n  ", "\n"), "  ")
}

// helpText writes a help text.
func (r *roff) helpText(text string) {
	for _, b := range parseHelp(text) {
		switch {
		case b.heading != "":
			r.heading(strings.ToUpper(b.heading))
		case b.rows != nil:
			r.rows(b.rows)
		case b.literal != "":
			r.literal(b.literal)
		default:
			r.paragraph(prose(b.paragraph))
		}
	}
}
