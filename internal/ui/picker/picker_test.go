package picker

import (
	"slices"
	"testing"

	"github.com/toolreg/toolreg/internal/ui"
)

// press sends keys to a picker without a screen.
func press(p *picker, keys ...ui.Key) {
	for _, key := range keys {
		if p.shown != "" {
			p.pressPage(key)
		} else {
			p.pressList(key)
		}
	}
}

func typed(text string) ui.Key   { return ui.Key{Text: text} }
func key(code ui.KeyCode) ui.Key { return ui.Key{Code: code} }

func listing(names ...string) Listing {
	var l Listing
	for _, name := range names {
		l.Items = append(l.Items, Item{Name: name})
	}
	return l
}

// TestLaterListings replaces the items while the picker is in use.
func TestLaterListings(t *testing.T) {
	p := &picker{rows: 10}
	p.setListing(listing("b", "d"))
	p.setListing(listing("a", "b", "d"))
	if got := p.current(); got != "a" {
		t.Errorf("%q is selected although no key was pressed", got)
	}
	press(p, key(ui.KeyDown), key(ui.KeyDown), key(ui.KeyDown))
	p.setListing(listing("a", "b", "c", "d", "e"))
	if got := p.current(); got != "d" {
		t.Errorf("%q is selected, not d", got)
	}
	press(p, key(ui.KeyEnter))
	p.setListing(listing("d", "e"))
	if p.shown != "d" || p.page != nil {
		t.Errorf("%q is shown, not the new page of d", p.shown)
	}
	p.setListing(listing("e"))
	if p.shown != "" || p.current() != "e" {
		t.Errorf("%q is shown although it was removed", p.shown)
	}
}

func TestQuery(t *testing.T) {
	p := &picker{rows: 2}
	p.setListing(listing("read_file", "write_file", "grep"))
	press(p, typed("file"), typed(" "), typed("wr"))
	if p.current() != "write_file" {
		t.Errorf("%q for %q", p.current(), p.query)
	}
	press(p, key(ui.KeyDeleteWord))
	if p.query != "file " || len(p.found) != 2 {
		t.Errorf("Ctrl-W leaves %q", p.query)
	}
	press(p, key(ui.KeyBackspace), key(ui.KeyBackspace), typed("é"), key(ui.KeyBackspace))
	if p.query != "fil" {
		t.Errorf("Backspace leaves %q", p.query)
	}
	press(p, key(ui.KeyDeleteLine), key(ui.KeyBackspace), key(ui.KeyPageDown), key(ui.KeyPageDown))
	if p.current() != "grep" {
		t.Errorf("%q is last", p.current())
	}
	press(p, key(ui.KeyHome), key(ui.KeyUp))
	if p.current() != "read_file" {
		t.Errorf("%q is first", p.current())
	}
	press(p, slices.Repeat([]ui.Key{typed("0123456789")}, 30)...)
	if len(p.query) > maxQuery || p.current() != "" {
		t.Errorf("a query of %d bytes", len(p.query))
	}
	press(p, key(ui.KeyEnter))
	if p.shown != "" {
		t.Errorf("%q is shown", p.shown)
	}
}
