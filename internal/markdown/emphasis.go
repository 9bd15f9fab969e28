package markdown

import "github.com/toolreg/toolreg/internal/terminal"

// styles of emphasis, strong and struck, in the order of piece.on.
func emphasisStyles() [3]terminal.Style {
	return [3]terminal.Style{terminal.Italic, terminal.Bold, terminal.Struck}
}

// emphasis pairs the runs of marks (CommonMark, "process emphasis"). What was
// searched in vain below a closing run is not searched again, so that the time
// is linear.
func (p *inlineParser) emphasis() {
	var open []int // runs that may open, by index
	type closing struct {
		mark byte
		both bool
		rest int
	}
	bottom := map[closing]int{} // how many of open are known to hold no match
	for i := range p.pieces {
		c := &p.pieces[i]
		if c.mark == 0 {
			continue
		}
		for c.ends && c.left > 0 {
			key := closing{c.mark, c.opens, len(c.text) % 3}
			n := len(open) - 1
			for n >= bottom[key] && !matches(&p.pieces[open[n]], c) {
				n--
			}
			if n < bottom[key] {
				bottom[key] = len(open)
				break
			}
			o := &p.pieces[open[n]]
			pair(o, c)
			open = open[:n+1]
			if o.left == 0 {
				open = open[:n]
			}
			for k, v := range bottom {
				bottom[k] = min(v, len(open))
			}
		}
		if c.opens && c.left > 0 {
			open = append(open, i)
		}
	}
}

// matches reports whether a run opens what another closes.
func matches(o, c *piece) bool {
	if o.mark != c.mark || o.left == 0 || c.mark == '~' && o.left != c.left {
		return false
	}
	sum := len(o.text) + len(c.text)
	return !(o.ends || c.opens) || sum%3 != 0 || len(o.text)%3 == 0 && len(c.text)%3 == 0
}

// pair uses one or two marks of each run up.
func pair(o, c *piece) {
	n, kind := 1, 0
	if o.left >= 2 && c.left >= 2 {
		n, kind = 2, 1
	}
	if c.mark == '~' {
		kind = 2
	}
	o.left -= n
	c.left -= n
	o.on[kind]++
	c.off[kind]++
}

// spans returns the pieces in their styles. Marks that are not used up are text.
func (p *inlineParser) spans() []terminal.Span {
	var depth [3]int
	out := make([]terminal.Span, 0, len(p.pieces))
	for i := range p.pieces {
		c := &p.pieces[i]
		var style terminal.Style
		for kind, s := range emphasisStyles() {
			depth[kind] -= c.off[kind]
			if depth[kind] > 0 {
				style |= s
			}
			depth[kind] += c.on[kind]
		}
		text := c.text
		if c.mark != 0 {
			text = text[:c.left]
		}
		if text != "" {
			out = append(out, terminal.Span{Text: text, Style: style | c.style})
		}
	}
	return out
}
