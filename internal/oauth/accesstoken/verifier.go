// Package accesstoken verifies access tokens for a resource server of OAuth 2.1: JSON Web Tokens
// (RFC 7519) that an authorization server has signed, as in RFC 9068. It asks the authorization
// server for nothing but its keys.
//
// Package serve uses it for serve.oauth; package oauth is the client's side.
package accesstoken

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-jose/go-jose/v4"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/webaddr"
)

const (
	// skew is how far the clocks of the issuer and of this machine may differ.
	skew = time.Minute
	// maxToken is the maximum length of a token.
	maxToken = 32 << 10
)

// Config says which tokens are accepted.
type Config struct {
	// Issuer is the issuer of the tokens, exactly as in their claim iss.
	Issuer string
	// Audience is the URL of the resource, exactly as in their claim aud.
	Audience string
	// KeysURL is the address of the issuer's keys (RFC 7517); "" means the address in its metadata.
	KeysURL string
	// Name and Groups are the claims that hold the caller's name and groups: the name of a claim
	// or, if no claim has that name, the names of nested claims, separated by dots.
	Name, Groups string
}

// Check returns an error if a configuration does not allow tokens to be verified safely.
func (c Config) Check() error {
	for _, one := range []struct{ name, address string }{
		{"issuer", c.Issuer}, {"audience", c.Audience}, {"jwksUri", c.KeysURL},
	} {
		if one.address == "" && one.name != "jwksUri" {
			return fmt.Errorf("%s is missing", one.name)
		}
		if one.address == "" {
			continue
		}
		if err := checkAddress(one.address); err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
	}
	if strings.ContainsAny(c.Issuer+c.Audience, "?#") {
		return errors.New(
			"issuer and audience must not have a query or a fragment (RFC 8414 section 2, RFC 8707 section 2)")
	}
	if c.Name == "" || c.Groups == "" {
		return errors.New("claims: name and groups must not be empty")
	}
	return nil
}

// checkAddress returns an error for an address that is neither https nor http on this machine.
func checkAddress(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Hostname() == "" || u.Opaque != "" || u.User != nil ||
		strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '"' || r == '\\' }):
		return errors.New("must be a web address such as https://login.example.com")
	case u.Scheme == "https", u.Scheme == "http" && webaddr.IsLoopback(u.Hostname()):
		return nil
	}
	return errors.New("must begin with https:// (or http:// on this machine)")
}

// Token is the content of a valid access token.
type Token struct {
	Name    string
	Groups  []string
	Scopes  []string
	Expires time.Time // when it ceases to be accepted, including the skew
}

// InvalidError reports a token that is not accepted. Reason contains no part of the token.
type InvalidError struct{ Reason string }

func (e *InvalidError) Error() string { return e.Reason }

func invalid(format string, args ...any) error {
	return &InvalidError{fmt.Sprintf(format, args...)}
}

// UnavailableError reports that a token cannot be verified because the issuer's keys are
// unavailable.
type UnavailableError struct{ Err error }

func (e *UnavailableError) Error() string { return "the keys of the issuer cannot be read" }

func (e *UnavailableError) Unwrap() error { return e.Err }

// Verifier verifies access tokens. Create it with [New]. It is safe for concurrent use.
type Verifier struct {
	config Config
	keys   *keySet
	now    func() time.Time

	mu       sync.Mutex
	verified map[[sha256.Size]byte]verified // by token and audiences
}

// verified is a token that was recently found valid.
type verified struct {
	Token
	until time.Time
}

const (
	// verifiedTime is how long a valid token is not verified again, because verifying takes as long
	// as the rest of a request.
	verifiedTime = 10 * time.Second
	// maxVerified is how many such tokens are remembered.
	maxVerified = 10_000
)

// New returns a verifier for a checked configuration. It takes over the keys of an earlier
// verifier, which may be nil, if that has the same issuer. warn receives the errors of fetching
// keys. now is the clock that decides whether a token has expired; nil means [time.Now].
func New(c Config, earlier *Verifier, warn func(error), now func() time.Time) *Verifier {
	if now == nil {
		now = time.Now
	}
	v := &Verifier{config: c, now: now}
	if earlier != nil && earlier.config.Issuer == c.Issuer && earlier.config.KeysURL == c.KeysURL {
		v.keys = earlier.keys
	} else {
		v.keys = &keySet{issuer: c.Issuer, address: c.KeysURL, warn: warn, pause: fetchPause, client: newClient()}
	}
	return v
}

// Config returns the configuration.
func (v *Verifier) Config() Config { return v.config }

// Now returns the time to which the times in tokens are compared.
func (v *Verifier) Now() time.Time { return v.now() }

// Follow fetches the keys, now and from time to time, until ctx is done or the channel is closed.
func (v *Verifier) Follow(ctx context.Context, until <-chan struct{}) { v.keys.follow(ctx, until) }

// Verify returns the content of a token. Its audience may also be one of more. The error is an
// *InvalidError, an *UnavailableError, or the cause of ctx.
func (v *Verifier) Verify(ctx context.Context, token string, more ...string) (Token, error) {
	if len(token) > maxToken {
		return Token{}, invalid("the token is longer than %d bytes", maxToken)
	}
	key := sha256.Sum256([]byte(strings.Join(append([]string{token}, more...), "\x00")))
	v.mu.Lock()
	known, ok := v.verified[key]
	v.mu.Unlock()
	if now := v.now(); ok && now.Before(known.until) {
		return known.Token, nil
	}
	t, err := v.verify(ctx, token, more)
	if err != nil {
		return Token{}, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.verified == nil || len(v.verified) >= maxVerified {
		v.verified = map[[sha256.Size]byte]verified{}
	}
	until := v.now().Add(verifiedTime)
	if t.Expires.Before(until) {
		until = t.Expires
	}
	v.verified[key] = verified{t, until}
	return t, nil
}

func (v *Verifier) verify(ctx context.Context, token string, more []string) (Token, error) {
	signed, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.RS256, jose.ES256, jose.EdDSA})
	if _, other := errors.AsType[*jose.ErrUnexpectedSignatureAlgorithm](err); other {
		return Token{}, invalid("the token is signed with an algorithm other than RS256, ES256 and EdDSA")
	}
	if err != nil || len(signed.Signatures) != 1 {
		return Token{}, invalid("the token is not a JSON Web Token that is signed")
	}
	header := signed.Signatures[0].Protected
	if err := checkHeader(header); err != nil {
		return Token{}, err
	}
	algorithm := jose.SignatureAlgorithm(header.Algorithm)
	keys, err := v.keys.findKeys(ctx, header.KeyID, algorithm)
	if err != nil {
		return Token{}, err
	}
	for _, key := range keys {
		if payload, err := signed.Verify(key.Key); err == nil {
			return v.readClaims(payload, more)
		}
	}
	if len(keys) == 0 {
		return Token{}, invalid("the token is signed with a key that the issuer does not have")
	}
	return Token{}, invalid("the signature of the token is wrong")
}

// checkHeader returns an error for a header that names a key, which only the issuer may choose;
// that has an extension which must be understood; or whose type is not that of an access token (RFC
// 9068 section 2.1; most issuers write JWT or no type).
func checkHeader(h jose.Header) error {
	for _, name := range []jose.HeaderKey{"crit", "jku", "x5u"} {
		if _, ok := h.ExtraHeaders[name]; ok {
			return invalid("the header %s of tokens is not accepted", name)
		}
	}
	if h.JSONWebKey != nil {
		return invalid("the header jwk of tokens is not accepted")
	}
	typ, ok := h.ExtraHeaders[jose.HeaderType]
	name, _ := typ.(string)
	if ok && !slices.Contains([]string{"jwt", "at+jwt", "application/at+jwt"}, strings.ToLower(name)) {
		return invalid("the token says that it is something other than an access token")
	}
	return nil
}

// readClaims checks the claims of a token whose signature has been verified.
func (v *Verifier) readClaims(payload []byte, more []string) (t Token, err error) {
	claims, err := jsonx.Parse(payload, jsonx.Options{Depth: 32, Strict: true})
	if err != nil || !claims.Is(jsonx.Object) {
		return t, invalid("the claims of the token are not a JSON object")
	}
	if iss := claims.Get("iss"); !iss.Is(jsonx.String) || iss.Text() != v.config.Issuer {
		return t, invalid("the token is of another issuer")
	}
	audience, err := texts(claims.Get("aud"))
	if err != nil || !slices.ContainsFunc(append(more, v.config.Audience),
		func(mine string) bool { return slices.Contains(audience, mine) }) {
		return t, invalid("the token is for another audience")
	}
	expires, ok := date(claims.Get("exp"))
	if !ok {
		return t, invalid("the token does not say when it expires")
	}
	now := v.now()
	if t.Expires = expires.Add(skew); !now.Before(t.Expires) {
		return t, invalid("the token has expired")
	}
	if from := claims.Get("nbf"); from != nil {
		if begins, ok := date(from); !ok || now.Before(begins.Add(-skew)) {
			return t, invalid("the token is not valid yet")
		}
	}
	if t.Name, err = v.name(claims); err != nil {
		return t, err
	}
	if t.Groups, err = v.groups(claims); err != nil {
		return t, err
	}
	t.Scopes, err = scopes(claims)
	return t, err
}

// maxName is the maximum length of the name of a caller or a group, in bytes.
const maxName = 256

// findClaim returns the claim with a name or, if there is none, the nested claim whose names the
// dots separate; nil if there is neither.
func findClaim(claims *jsonx.Value, name string) *jsonx.Value {
	if !claims.Is(jsonx.Object) {
		return nil
	}
	if v := claims.Get(name); v != nil {
		return v
	}
	for i := range len(name) {
		if name[i] != '.' {
			continue
		}
		if v := findClaim(claims.Get(name[:i]), name[i+1:]); v != nil {
			return v
		}
	}
	return nil
}

// name returns the name of the caller.
func (v *Verifier) name(claims *jsonx.Value) (string, error) {
	is := findClaim(claims, v.config.Name)
	if !is.Is(jsonx.String) || !isName(is.Text()) {
		return "", invalid("the claim %s of the token is not a name", v.config.Name)
	}
	return is.Text(), nil
}

// groups returns the groups of the caller: a list, or a single one. A claim that is stored
// elsewhere (OpenID Connect Core 1.0 section 5.6.2) is an error, because rules may deny by group.
func (v *Verifier) groups(claims *jsonx.Value) ([]string, error) {
	is := findClaim(claims, v.config.Groups)
	if is == nil || is.Is(jsonx.Null) {
		if isDistributed(claims, v.config.Groups) {
			return nil, invalid("the token does not have the claim %s itself, but says where it is", v.config.Groups)
		}
		return nil, nil
	}
	groups, err := texts(is)
	if err != nil {
		return nil, invalid("the claim %s of the token is neither a list of names nor a name", v.config.Groups)
	}
	for _, group := range groups {
		if !isName(group) {
			return nil, invalid("the claim %s of the token has a group that is not a name", v.config.Groups)
		}
	}
	return groups, nil
}

// isDistributed reports whether an object of claims says that a claim, or one that contains it, is
// stored elsewhere. Nested claims may be distributed too.
func isDistributed(claims *jsonx.Value, name string) bool {
	if !claims.Is(jsonx.Object) {
		return false
	}
	names := claims.Get("_claim_names")
	if names.Get(name) != nil {
		return true
	}
	for i := range len(name) {
		if name[i] == '.' && (names.Get(name[:i]) != nil || isDistributed(claims.Get(name[:i]), name[i+1:])) {
			return true
		}
	}
	return false
}

// isName reports whether a text can be shown and stored as a name. Characters that JSON could not
// decode are refused, because different names would become the same.
func isName(s string) bool {
	return s != "" && len(s) <= maxName &&
		!strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError })
}

// scopes returns the scopes of a token: the claim scope (RFC 9068 section 2.2.3), or scp, which
// Entra ID and Okta use.
func scopes(claims *jsonx.Value) ([]string, error) {
	is := claims.Get("scope")
	if is == nil {
		is = claims.Get("scp")
	}
	if is == nil {
		return nil, nil
	}
	list, err := texts(is)
	if err != nil {
		return nil, invalid("the scopes of the token are not text")
	}
	if is.Is(jsonx.String) {
		return strings.Fields(is.Text()), nil
	}
	return list, nil
}

// texts returns the strings of a list, or a single string.
func texts(v *jsonx.Value) ([]string, error) {
	if v.Is(jsonx.String) {
		return []string{v.Text()}, nil
	}
	if !v.Is(jsonx.Array) {
		return nil, errNoTexts
	}
	for _, item := range v.Items {
		if !item.Is(jsonx.String) {
			return nil, errNoTexts
		}
	}
	return v.Strings(), nil
}

var errNoTexts = errors.New("not a string or a list of strings")

// date reads a NumericDate (RFC 7519 section 2).
func date(v *jsonx.Value) (time.Time, bool) {
	const last = 253402300799 // of the year 9999
	if !v.Is(jsonx.Number) {
		return time.Time{}, false
	}
	seconds, err := strconv.ParseFloat(v.Token, 64)
	if err != nil || seconds < 0 || seconds > last {
		return time.Time{}, false
	}
	return time.Unix(int64(seconds), 0), true
}
