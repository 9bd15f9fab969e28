// Package picker lets a person choose one of many items on the whole screen of
// a terminal: typing filters, Enter shows an item, Enter again picks it. Items
// may be added while it runs. Names and texts are untrusted and escaped.
package picker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolreg/toolreg/internal/ui"
)

// Listing is the set of items to pick from at one time.
type Listing struct {
	Items []Item
	Note  string // shown next to the count, for example what is still loading
	// Show returns the page of an item for a screen of that width, in lines
	// that may have styles of [ui.Paint].
	Show func(name string, width int) []string
}

// Options are the options of [Pick].
type Options struct {
	TTY *ui.TTY
	// Listings delivers the items; each Listing replaces the previous one. The
	// channel may be closed.
	Listings <-chan Listing
	// Enter describes what picking an item does, such as "call". It is shown in
	// the line of keys.
	Enter string
}

// ErrInterrupted is returned when the person presses Ctrl-C.
var ErrInterrupted = errors.New("interrupted")

// Pick returns the name of the item that the person picked, or "" if none. The error
// is the cause of ctx, [ErrInterrupted], or that of an unusable terminal.
func Pick(ctx context.Context, o Options) (name string, err error) {
	screen, err := o.TTY.Full(ctx)
	if err != nil {
		return "", err
	}
	defer screen.Close(ctx)
	p := &picker{options: o, screen: screen}
	for {
		if err := p.draw(ctx); err != nil {
			return "", err
		}
		for { // all keys typed so far
			done, err := p.step(ctx)
			if err != nil || done {
				return p.picked, err
			}
			if len(screen.Keys()) == 0 {
				break
			}
		}
	}
}

// picker is the state of one Pick.
type picker struct {
	options Options
	screen  *ui.Full

	listing    Listing
	candidates []candidate // of the items
	query      string
	found      []match
	selected   int // index in found
	top        int // index in found of the first item on the screen

	shown  string   // name of the item whose page is shown; "" means the list is shown
	page   []string // its page
	scroll int      // the first line of page on the screen
	width  int      // the width that page was made for
	rows   int      // number of lines of the list or the page in the last drawing

	picked string
}

// step waits for one event and handles it.
func (p *picker) step(ctx context.Context) (done bool, err error) {
	select {
	case <-ctx.Done():
		return true, context.Cause(ctx)
	case listing, open := <-p.options.Listings:
		if !open {
			p.options.Listings = nil
			return false, nil
		}
		p.setListing(listing)
	case <-p.screen.Resized():
		return false, p.screen.Clear(ctx)
	case key, open := <-p.screen.Keys():
		if !open {
			return true, nil // the terminal is gone
		}
		return p.press(ctx, key)
	}
	return false, nil
}

// setListing replaces the items. The selected item stays selected if it still exists.
func (p *picker) setListing(l Listing) {
	was, moved := p.current(), p.selected > 0
	p.listing = l
	p.candidates = make([]candidate, len(l.Items))
	for i, item := range l.Items {
		p.candidates[i] = newCandidate(item)
	}
	p.filter()
	if i := slices.IndexFunc(p.found, func(m match) bool { return l.Items[m.index].Name == was }); moved && i > 0 {
		p.selected = i
	}
	p.page = nil // the item may have changed or be gone
	if !slices.ContainsFunc(l.Items, func(item Item) bool { return item.Name == p.shown }) {
		p.shown = ""
	}
}

// filter applies the query and selects the best match.
func (p *picker) filter() {
	p.found, p.selected, p.top = search(p.query, p.candidates), 0, 0
}

func (p *picker) current() string {
	if p.selected >= len(p.found) {
		return ""
	}
	return p.listing.Items[p.found[p.selected].index].Name
}

// press handles a key that has the same meaning everywhere, then the others.
func (p *picker) press(ctx context.Context, key ui.Key) (done bool, err error) {
	switch key.Code {
	case ui.KeyInterrupt:
		return true, ErrInterrupted
	case ui.KeySuspend:
		return false, p.screen.Suspend(ctx)
	case ui.KeyRedraw:
		return false, p.screen.Clear(ctx)
	}
	if p.shown != "" {
		return p.pressPage(key), nil
	}
	return p.pressList(key), nil
}

// maxQuery limits the query, in bytes.
const maxQuery = 200

func (p *picker) pressList(key ui.Key) (done bool) {
	last := max(len(p.found)-1, 0)
	switch key.Code {
	case ui.KeyEscape:
		return true
	case ui.KeyEndOfInput:
		return p.query == ""
	case ui.KeyEnter:
		p.shown, p.page, p.scroll = p.current(), nil, 0
	case ui.KeyUp:
		p.selected = max(p.selected-1, 0)
	case ui.KeyDown:
		p.selected = min(p.selected+1, last)
	case ui.KeyPageUp:
		p.selected = max(p.selected-p.rows, 0)
	case ui.KeyPageDown:
		p.selected = min(p.selected+p.rows, last)
	case ui.KeyHome:
		p.selected = 0
	case ui.KeyEnd:
		p.selected = last
	default:
		p.edit(key)
	}
	return false
}

func (p *picker) edit(key ui.Key) {
	query := p.query
	switch key.Code {
	case ui.KeyText:
		if len(query)+len(key.Text) <= maxQuery {
			query += key.Text
		}
	case ui.KeyBackspace:
		_, n := utf8.DecodeLastRuneInString(query)
		query = query[:len(query)-n]
	case ui.KeyDeleteWord:
		query = query[:strings.LastIndex(strings.TrimRight(query, " "), " ")+1]
	case ui.KeyDeleteLine:
		query = ""
	}
	if query != p.query {
		p.query = query
		p.filter()
	}
}

func (p *picker) pressPage(key ui.Key) (done bool) {
	switch key.Code {
	case ui.KeyEscape, ui.KeyLeft, ui.KeyBackspace:
		p.shown = ""
	case ui.KeyEnter:
		p.picked = p.shown
		return true
	case ui.KeyUp:
		p.scroll--
	case ui.KeyDown:
		p.scroll++
	case ui.KeyPageUp:
		p.scroll -= p.rows
	case ui.KeyPageDown:
		p.scroll += p.rows
	case ui.KeyHome:
		p.scroll = 0
	case ui.KeyEnd:
		p.scroll = len(p.page)
	case ui.KeyText:
		if key.Text == " " {
			p.scroll += p.rows
		}
	}
	return false
}
