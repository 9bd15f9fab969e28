package serve

import (
	"context"
	"crypto/rand"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/serve/auth"
)

const (
	// ConsolePath is the path of the console.
	ConsolePath = "/console"
	// browserTime is how long a browser is signed in.
	browserTime = 12 * time.Hour
	// maxBrowsers is how many browsers may be signed in; the one that signed in first makes room.
	maxBrowsers = 1000
	// maxForm is the maximum size of the form with a token, in bytes.
	maxForm = 4 << 10
)

// ConsolePages are the pages of the console.
type ConsolePages struct {
	// SignIn answers with the form that posts a field "token" to /console/sign-in. reason says
	// why an attempt was refused; "" if there was none.
	SignIn func(w http.ResponseWriter, reason string)
	// Signed serves /console and the paths below it to browsers that are signed in. The
	// context of a request ends when its token does; see [Visitor].
	Signed http.Handler
}

type visitorKey struct{}

// Visitor returns the name of the token with which a request for the console was signed in.
func Visitor(ctx context.Context) string {
	name, _ := ctx.Value(visitorKey{}).(string)
	return name
}

// browsers are those that are signed in to the console. The zero value has none. It is safe for
// concurrent use.
type browsers struct {
	cookie string // its name

	mu   sync.Mutex
	byID map[auth.Hash]browser // by the hash of the cookie
}

type browser struct {
	from  auth.Identity
	until time.Time
}

func (b *browsers) add(one browser) (cookie string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.byID == nil {
		b.byID = map[auth.Hash]browser{}
	}
	var first auth.Hash
	for id, other := range b.byID {
		if time.Now().After(other.until) {
			delete(b.byID, id)
		} else if old, ok := b.byID[first]; !ok || other.until.Before(old.until) {
			first = id
		}
	}
	if len(b.byID) >= maxBrowsers {
		delete(b.byID, first)
	}
	cookie = rand.Text()
	b.byID[auth.HashOf(cookie)] = one
	return cookie
}

func (b *browsers) find(r *http.Request) (id auth.Hash, one browser, ok bool) {
	cookie, err := r.Cookie(b.cookie)
	if err != nil {
		return id, one, false
	}
	id = auth.HashOf(cookie.Value)
	b.mu.Lock()
	defer b.mu.Unlock()
	one, ok = b.byID[id]
	return id, one, ok && time.Now().Before(one.until)
}

func (b *browsers) remove(id auth.Hash) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.byID, id)
}

// Console serves the console to browsers with a token that may enter it. It must be called
// before the first request, and needs [HTTPOptions].Tokens.
func (h *HTTP) Console(pages ConsolePages) {
	h.browsers.cookie = "toolreg-" + strings.ToLower(rand.Text()[:8]) // cookies of other ports of this host have other names
	h.console = func(w http.ResponseWriter, r *http.Request) { h.serveConsole(w, r, pages) }
}

func (h *HTTP) serveConsole(w http.ResponseWriter, r *http.Request, pages ConsolePages) {
	secureHeaders(w)
	// of the same origin, see checkOrigin
	if r.Method != http.MethodGet && r.Method != http.MethodHead && (r.Method != http.MethodPost || r.Header.Get("Origin") == "") {
		h.refuse(w, r, http.StatusForbidden, "forbidden: only pages of the console may change something")
		return
	}
	if r.URL.Path == ConsolePath+"/sign-in" && r.Method == http.MethodPost {
		h.signIn(w, r, pages)
		return
	}
	id, one, ok := h.browsers.find(r)
	now, valid := h.tokens.Renew(one.from)
	if !ok || !valid || !now.Console {
		h.browsers.remove(id)
		if r.URL.Path != ConsolePath || r.Method == http.MethodPost {
			http.Error(w, "unauthorized: sign in at "+ConsolePath, http.StatusUnauthorized)
			return
		}
		pages.SignIn(w, "")
		return
	}
	if r.URL.Path == ConsolePath+"/sign-out" && r.Method == http.MethodPost {
		h.browsers.remove(id)
		h.setCookie(w, r, "", -1)
		http.Redirect(w, r, ConsolePath, http.StatusSeeOther)
		return
	}
	ctx, done := h.visits.Add(context.WithValue(r.Context(), visitorKey{}, one.from.Name), one.from)
	defer done()
	pages.Signed.ServeHTTP(w, r.WithContext(ctx))
}

// secureHeaders sets the headers of pages that other sites must not use.
func secureHeaders(w http.ResponseWriter) {
	for name, value := range map[string]string{
		"Cache-Control": "no-store", "Content-Security-Policy": "frame-ancestors 'none'", "X-Frame-Options": "DENY",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		"Referrer-Policy": "same-origin", "X-Content-Type-Options": "nosniff",
	} {
		w.Header().Set(name, value)
	}
}

// issuerAway is what a form says while no token can be verified.
const issuerAway = "Tokens cannot be verified now: the issuer does not give its keys. Try again."

// signIn checks the token of the form and gives the browser a cookie for it.
func (h *HTTP) signIn(w http.ResponseWriter, r *http.Request, pages ConsolePages) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(headerTime))
	from, no := h.tokens.Find(r.Context(), strings.TrimSpace(r.PostFormValue("token")), r.URL.EscapedPath())
	reason := ""
	switch {
	case no != nil && no.Status == http.StatusServiceUnavailable:
		reason = issuerAway
	case no != nil && no.Status == http.StatusForbidden:
		reason = "This token may not enter the console: " + strings.TrimPrefix(no.Reason, "forbidden: ") + "."
	case no != nil:
		reason = "This is not a token of this server."
	case !from.Console && h.opts.OAuth != nil:
		reason = "This token may not enter the console: it lacks the scope console."
	case !from.Console:
		reason = "This token may not enter the console: its line in the token file lacks the word console."
	default:
		h.setCookie(w, r, h.browsers.add(browser{from, time.Now().Add(browserTime)}), int(browserTime/time.Second))
		http.Redirect(w, r, ConsolePath, http.StatusSeeOther)
		return
	}
	h.opts.Log.Warn("console: sign-in refused", "reason", reason, "caller", from.Name, "from", r.RemoteAddr)
	pages.SignIn(w, reason)
}

func (h *HTTP) setCookie(w http.ResponseWriter, r *http.Request, value string, seconds int) {
	http.SetCookie(w, &http.Cookie{
		Name: h.browsers.cookie, Value: value, Path: ConsolePath, MaxAge: seconds, HttpOnly: true,
		Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode,
	})
}
