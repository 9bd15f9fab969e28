package ui

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"golang.org/x/net/idna"
)

// openAddress shows a URL that a server wants opened, with its host on a
// separate line, and asks before opening it.
func (d *dialog) openAddress(ctx context.Context) (Reply, error) {
	d.heading("wants you to open an address")
	u, err := url.Parse(d.q.URL)
	if err != nil || u.Host == "" {
		return Reply{}, nil
	}
	d.v.printf("Address:")
	d.v.quote(Line(d.q.URL))
	d.v.printf("Host:")
	d.v.row([]Span{{Text: Line(u.Host), Style: Bold}})
	d.warnOfHost(u)
	d.v.printf("The server may learn what you do there. toolreg opens the address only if you agree.")
	words := []string{"yes", "myself", "cancel", "no"}
	if d.open == nil {
		words = words[1:]
	} else {
		d.v.printf("yes opens it in the browser; myself lets you open it by hand")
	}
	d.head = d.v.b.String()
	about := d.line("Open " + Line(d.q.URL) + " for MCP server " + name(d.q.Server))
	chosen, err := d.choose(ctx, about, "Open it?", words...)
	switch {
	case err != nil:
		return Reply{}, err
	case chosen.Word == "cancel":
		return Reply{Action: Cancel}, nil
	case chosen.Word == "no":
		return Reply{Said: chosen.Said}, nil
	case chosen.Word == "yes":
		if err := d.open(ctx, u.String()); err != nil {
			d.v.printf("%s; open the address above yourself.", Line(err.Error()))
		}
	}
	return d.waitUntilDone(ctx, about)
}

// waitUntilDone waits until the person has finished at the URL, if the server
// reports that.
func (d *dialog) waitUntilDone(ctx context.Context, about string) (Reply, error) {
	if d.q.Done == nil {
		return Reply{Action: Accept}, d.tty.write(ctx, d.flushed())
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
		return Reply{Action: Accept}, nil
	case err != nil:
		return Reply{}, err
	case chosen.Word == "cancel":
		return Reply{Action: Cancel}, nil
	case chosen.Word == "yes":
		return Reply{Action: Accept}, nil
	}
	return Reply{Said: chosen.Said}, nil
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
		d.v.printf("Note: the host contains non-ASCII letters, which can look like others:")
		d.v.quote(Line(ascii) + " is shown as " + Line(unicode))
	}
	if u.Scheme == "http" {
		d.v.printf("Note: it goes to a program on this machine, unencrypted.")
	}
	if strings.Count(host, ".") >= 4 {
		d.v.printf("Note: the host has many parts; the last ones show who owns it.")
	}
}
