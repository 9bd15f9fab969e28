package asking

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"golang.org/x/net/idna"

	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/ui"
)

// openAddress shows a URL that a server wants opened, with its host on a
// separate line, and asks before opening it.
func (d *dialog) openAddress(ctx context.Context) (ask.Answer, error) {
	d.heading("wants you to open an address")
	u, err := url.Parse(d.q.URL)
	if err != nil || u.Host == "" {
		return ask.Answer{Action: ask.Decline}, nil
	}
	d.v.Printf("Address:")
	d.v.Quote(ui.Line(d.q.URL))
	d.v.Printf("Host:")
	d.v.Row([]ui.Span{{Text: ui.Line(u.Host), Style: ui.Bold}})
	d.warnOfHost(u)
	d.v.Printf("The server may learn what you do there. toolreg opens the address only if you agree.")
	words := []string{"yes", "myself", "cancel", "no"}
	if d.open == nil {
		words = words[1:]
	} else {
		d.v.Printf("yes opens it in the browser; myself lets you open it by hand")
	}
	d.head = d.v.String()
	about := d.line("Open " + ui.Line(d.q.URL) + " for MCP server " + name(d.q.Server))
	chosen, err := d.choose(ctx, about, "Open it?", words...)
	switch {
	case err != nil:
		return ask.Answer{}, err
	case chosen.Word == "cancel":
		return ask.Answer{Action: ask.Cancel}, nil
	case chosen.Word == "no":
		return ask.Answer{Action: ask.Decline, Said: chosen.Said}, nil
	case chosen.Word == "yes":
		if err := d.open(ctx, u.String()); err != nil {
			d.v.Printf("%s; open the address above yourself.", ui.Line(err.Error()))
		}
	}
	return d.waitUntilDone(ctx, about)
}

// waitUntilDone waits until the person has finished at the URL, if the server
// reports that.
func (d *dialog) waitUntilDone(ctx context.Context, about string) (ask.Answer, error) {
	if d.q.Done == nil {
		return ask.Answer{Action: ask.Accept}, d.turn.Show(ctx, d.v.Take())
	}
	done := errors.New("the server reports that it is finished")
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-d.q.Done:
			cancel(done)
		case <-inner.Done():
		}
	}()
	chosen, err := d.choose(inner, about, "Finished there?", "yes", "cancel", "no")
	switch {
	case errors.Is(err, done):
		return ask.Answer{Action: ask.Accept}, nil
	case err != nil:
		return ask.Answer{}, err
	case chosen.Word == "cancel":
		return ask.Answer{Action: ask.Cancel}, nil
	case chosen.Word == "yes":
		return ask.Answer{Action: ask.Accept}, nil
	}
	return ask.Answer{Action: ask.Decline, Said: chosen.Said}, nil
}

// warnOfHost warns about a host that may be misleading.
func (d *dialog) warnOfHost(u *url.URL) {
	host := u.Hostname()
	ascii, err := idna.Punycode.ToASCII(host)
	if err != nil {
		ascii = host
	}
	unicode, err := idna.Punycode.ToUnicode(host)
	if err != nil {
		unicode = host
	}
	if ascii != unicode {
		d.v.Printf("Note: the host contains non-ASCII letters, which can look like others:")
		d.v.Quote(ui.Line(ascii) + " is shown as " + ui.Line(unicode))
	}
	if u.Scheme == "http" {
		d.v.Printf("Note: it goes to a program on this machine, unencrypted.")
	}
	if strings.Count(host, ".") >= 4 {
		d.v.Printf("Note: the host has many parts; the last ones show who owns it.")
	}
}
