// Package picker lets a person choose one of many items on the whole screen of a
// terminal: they type to filter, Enter shows an item, Enter again picks it. Items
// may arrive while it runs. Names and texts are foreign and shown as such.
package picker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolreg/toolreg/internal/terminal"
)

// Item is one thing to pick. Names differ.
type Item struct {
	Name   string
	Source string
	Text   string // the first line is shown, all of it is searched
	Also   string // other words to find it by
}

// Listing is what there is to pick from by now.
type Listing struct {
	Items []Item
	Note  string // shown beside the count, such as what is still loading
	// Show returns an item in full for a screen of that width, in lines that hold
	// styles of [terminal.Paint].
	Show func(name string, width int) []string
}

// Options tune [Pick].
type Options struct {
	TTY *terminal.TTY
	// Listings gives the items; a later one replaces those before. It may be
	// closed.
	Listings <-chan Listing
	// Enter says what picking does, for the line of keys, such as "call".
	Enter string
}

// ErrInterrupted is the error when the person pressed Ctrl-C.
var ErrInterrupted = errors.New("interrupted")

// Pick returns the name of the item that was picked, "" where none was. Its error
// is the cause of ctx, [ErrInterrupted], or a terminal that cannot be used.
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
		for { // all keys that were typed by now
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

// picker is the state of the screen.
type picker struct {
	options Options
	screen  *terminal.Full

	listing    Listing
	candidates []candidate // of the items
	query      string
	found      []match
	selected   int // of found
	top        int // the first of found on the screen

	shown  string   // the item that is shown in full; "" = the list is
	page   []string // of it
	scroll int      // the first line of page on the screen
	width  int      // that page was made for
	rows   int      // lines that the list or the page had at the last drawing

	picked string
}

// step waits for one event and acts on it.
func (p *picker) step(ctx context.Context) (done bool, err error) {
	select {
	case <-ctx.Done():
		return true, context.Cause(ctx)
	case listing, open := <-p.options.Listings:
		if !open {
			p.options.Listings = nil
			return false, nil
		}
		p.list(listing)
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

// list takes new items over. What the person selected stays so where it is there
// still.
func (p *picker) list(l Listing) {
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
	p.page = nil // what is shown may be another item's now, or gone
	if !slices.ContainsFunc(l.Items, func(item Item) bool { return item.Name == p.shown }) {
		p.shown = ""
	}
}

// filter looks for the query and selects the best.
func (p *picker) filter() {
	p.found, p.selected, p.top = search(p.query, p.candidates), 0, 0
}

// current is the name of the selected item, "" if none.
func (p *picker) current() string {
	if p.selected >= len(p.found) {
		return ""
	}
	return p.listing.Items[p.found[p.selected].index].Name
}

// press acts on a key that means the same everywhere, then on the others.
func (p *picker) press(ctx context.Context, key terminal.Key) (done bool, err error) {
	switch key.Code {
	case terminal.KeyInterrupt:
		return true, ErrInterrupted
	case terminal.KeySuspend:
		return false, p.screen.Suspend(ctx)
	case terminal.KeyRedraw:
		return false, p.screen.Clear(ctx)
	}
	if p.shown != "" {
		return p.pressPage(key), nil
	}
	return p.pressList(key), nil
}

// maxQuery bounds the query, in bytes.
const maxQuery = 200

func (p *picker) pressList(key terminal.Key) (done bool) {
	last := max(len(p.found)-1, 0)
	switch key.Code {
	case terminal.KeyEscape:
		return true
	case terminal.KeyEndOfInput:
		return p.query == ""
	case terminal.KeyEnter:
		p.shown, p.page, p.scroll = p.current(), nil, 0
	case terminal.KeyUp:
		p.selected = max(p.selected-1, 0)
	case terminal.KeyDown:
		p.selected = min(p.selected+1, last)
	case terminal.KeyPageUp:
		p.selected = max(p.selected-p.rows, 0)
	case terminal.KeyPageDown:
		p.selected = min(p.selected+p.rows, last)
	case terminal.KeyHome:
		p.selected = 0
	case terminal.KeyEnd:
		p.selected = last
	default:
		p.edit(key)
	}
	return false
}

// edit changes the query.
func (p *picker) edit(key terminal.Key) {
	query := p.query
	switch key.Code {
	case terminal.KeyText:
		if len(query)+len(key.Text) <= maxQuery {
			query += key.Text
		}
	case terminal.KeyBackspace:
		_, n := utf8.DecodeLastRuneInString(query)
		query = query[:len(query)-n]
	case terminal.KeyDeleteWord:
		query = query[:strings.LastIndex(strings.TrimRight(query, " "), " ")+1]
	case terminal.KeyDeleteLine:
		query = ""
	}
	if query != p.query {
		p.query = query
		p.filter()
	}
}

func (p *picker) pressPage(key terminal.Key) (done bool) {
	switch key.Code {
	case terminal.KeyEscape, terminal.KeyLeft, terminal.KeyBackspace:
		p.shown = ""
	case terminal.KeyEnter:
		p.picked = p.shown
		return true
	case terminal.KeyUp:
		p.scroll--
	case terminal.KeyDown:
		p.scroll++
	case terminal.KeyPageUp:
		p.scroll -= p.rows
	case terminal.KeyPageDown:
		p.scroll += p.rows
	case terminal.KeyHome:
		p.scroll = 0
	case terminal.KeyEnd:
		p.scroll = len(p.page)
	case terminal.KeyText:
		if key.Text == " " {
			p.scroll += p.rows
		}
	}
	return false
}
