package terminal

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"golang.org/x/net/idna"
)

// openAddress shows an address that a server wants opened and asks before
// anything opens it. The whole address is shown, its host apart.
func (d *dialog) openAddress(ctx context.Context) (Reply, error) {
	d.heading("wants you to open an address")
	u, err := url.Parse(d.q.URL)
	if err != nil || u.Host == "" {
		return Decline, nil
	}
	d.v.printf("The address:")
	d.v.quote(Line(d.q.URL))
	d.v.printf("Its host:")
	d.v.row([]Span{{Text: Line(u.Host), Style: Bold}})
	d.warnOfHost(u)
	d.v.printf("What you do there, the server may get to know. It is not opened unless you say so.")
	words := []string{"yes", "myself", "cancel", "no"}
	if d.open == nil {
		words = words[1:]
	} else {
		d.v.printf("yes: in the browser; myself: you open it by hand")
	}
	word, err := d.choose(ctx, "Open it?", words...)
	switch {
	case err != nil:
		return Cancel, err
	case word == "cancel":
		return Cancel, nil
	case word == "no":
		return Decline, nil
	case word == "yes":
		if err := d.open(ctx, u.String()); err != nil {
			d.v.printf("%s; open the address above by hand.", Line(err.Error()))
		}
	}
	return d.waitUntilDone(ctx)
}

// waitUntilDone waits until the person is done at the address, where the server
// waits for that.
func (d *dialog) waitUntilDone(ctx context.Context) (Reply, error) {
	if d.q.Done == nil {
		return Accept, d.tty.write(ctx, d.flushed())
	}
	done := errors.New("the server says that it is done")
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-d.q.Done:
			cancel(done)
		case <-inner.Done():
		}
	}()
	word, err := d.choose(inner, "Done there?", "yes", "cancel", "no")
	switch {
	case errors.Is(err, done):
		return Accept, nil
	case err != nil || word == "cancel":
		return Cancel, err
	case word == "yes":
		return Accept, nil
	}
	return Decline, nil
}

// warnOfHost says what of an address may deceive.
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
		d.v.printf("Mind: the host has letters beyond a to z, which can look like others:")
		d.v.quote(Line(ascii) + " is shown as " + Line(unicode))
	}
	if u.Scheme == "http" {
		d.v.printf("Mind: it leads to a program on this machine, unencrypted.")
	}
	if strings.Count(host, ".") >= 4 {
		d.v.printf("Mind: the host has many parts; what counts is the end of it.")
	}
}
