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
	// maxBrowsers is how many browsers may be signed in; the earliest makes room for another.
	maxBrowsers = 1000
)

// ConsolePages are the pages of the console.
type ConsolePages struct {
	// SignIn answers with a form that posts a field "token" to /console/sign-in. reason says why
	// the last attempt was refused; empty if there was none.
	SignIn func(w http.ResponseWriter, reason string)
	// Signed serves /console and the paths below it to browsers that are signed in. The context of
	// a request ends when its token becomes invalid; see [Visitor].
	Signed http.Handler
}

type visitorKey struct{}

// Visitor returns the name of the token with which a request for the console was signed in.
func Visitor(ctx context.Context) string {
	name, _ := ctx.Value(visitorKey{}).(string)
	return name
}

// console serves browsers that are signed in. It is safe for concurrent use.
type console struct {
	entry
	pages  ConsolePages
	scoped bool         // tokens have scopes
	visits auth.Running // requests
	cookie string       // its name

	mu   sync.Mutex
	byID map[auth.Hash]browser // by the hash of the cookie
}

type browser struct {
	from  auth.Identity
	until time.Time
}

func (c *console) addBrowser(one browser) (cookie string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var first auth.Hash
	for id, other := range c.byID {
		if time.Now().After(other.until) {
			delete(c.byID, id)
		} else if old, ok := c.byID[first]; !ok || other.until.Before(old.until) {
			first = id
		}
	}
	if len(c.byID) >= maxBrowsers {
		delete(c.byID, first)
	}
	cookie = rand.Text()
	c.byID[auth.HashOf(cookie)] = one
	return cookie
}

func (c *console) findBrowser(r *http.Request) (id auth.Hash, one browser, ok bool) {
	cookie, err := r.Cookie(c.cookie)
	if err != nil {
		return id, one, false
	}
	id = auth.HashOf(cookie.Value)
	c.mu.Lock()
	defer c.mu.Unlock()
	one, ok = c.byID[id]
	return id, one, ok && time.Now().Before(one.until)
}

func (c *console) remove(id auth.Hash) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byID, id)
}

func (c *console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secureHeaders(w)
	// of the same origin; see checkOrigin
	if r.Method != http.MethodGet && r.Method != http.MethodHead &&
		(r.Method != http.MethodPost || r.Header.Get("Origin") == "") {
		c.refuse(w, r, forbidden("only pages of the console may change something"))
		return
	}
	if r.URL.Path == ConsolePath+"/sign-in" && r.Method == http.MethodPost {
		c.signIn(w, r)
		return
	}
	id, one, ok := c.findBrowser(r)
	now, valid := c.tokens.Renew(one.from)
	if !ok || !valid || !now.Console {
		c.remove(id)
		if r.URL.Path != ConsolePath || r.Method == http.MethodPost {
			http.Error(w, "unauthorized: sign in at "+ConsolePath, http.StatusUnauthorized)
			return
		}
		c.pages.SignIn(w, "")
		return
	}
	if r.URL.Path == ConsolePath+"/sign-out" && r.Method == http.MethodPost {
		c.remove(id)
		c.setCookie(w, r, "", -1)
		http.Redirect(w, r, ConsolePath, http.StatusSeeOther)
		return
	}
	ctx, done := c.visits.Add(context.WithValue(r.Context(), visitorKey{}, one.from.Name), one.from)
	defer done()
	c.pages.Signed.ServeHTTP(w, r.WithContext(ctx))
}

// secureHeaders sets headers that protect a page from use by other sites.
func secureHeaders(w http.ResponseWriter) {
	for name, value := range map[string]string{
		"Cache-Control": "no-store", "Content-Security-Policy": "frame-ancestors 'none'", "X-Frame-Options": "DENY",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		"Referrer-Policy": "same-origin", "X-Content-Type-Options": "nosniff",
	} {
		w.Header().Set(name, value)
	}
}

// issuerAway is what a form says while tokens cannot be verified.
const issuerAway = "Tokens cannot be verified now: the issuer does not give its keys. Try again."

// signIn checks the token of the form and gives the browser a cookie for it.
func (c *console) signIn(w http.ResponseWriter, r *http.Request) {
	from, no := c.posted(w, r)
	reason := ""
	switch {
	case no != nil && no.Status == http.StatusServiceUnavailable:
		reason = issuerAway
	case no != nil && no.Status == http.StatusForbidden:
		reason = "This token may not enter the console: " + strings.TrimPrefix(no.Reason, "forbidden: ") + "."
	case no != nil:
		reason = "This is not a token of this server."
	case !from.Console && c.scoped:
		reason = "This token may not enter the console: it lacks the scope console."
	case !from.Console:
		reason = "This token may not enter the console: its line in the token file lacks the word console."
	default:
		c.setCookie(w, r, c.addBrowser(browser{from, time.Now().Add(browserTime)}), int(browserTime/time.Second))
		http.Redirect(w, r, ConsolePath, http.StatusSeeOther)
		return
	}
	c.log.Warn("console: sign-in refused", "reason", reason, "caller", from.Name, "from", r.RemoteAddr)
	c.pages.SignIn(w, reason)
}

func (c *console) setCookie(w http.ResponseWriter, r *http.Request, value string, seconds int) {
	http.SetCookie(w, &http.Cookie{
		Name: c.cookie, Value: value, Path: ConsolePath, MaxAge: seconds, HttpOnly: true,
		Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode,
	})
}
