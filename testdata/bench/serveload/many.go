package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// forMany measures serve with what a service for many people has: access tokens of an issuer, a
// store, limits, a hundred profiles, and a thousand rules by group. It needs redis-server.
func forMany(calls int, load time.Duration) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		log.Print("without redis-server there are no rows about a service for many")
		return
	}
	plain := newServe(1, []string{"stub"})
	full, token := newFull()
	with := func(g gateway, token, version string) *way {
		return &way{name: version, pid: g.pid, connect: func() func(string, string) error {
			return newHTTPWith(g.url, token, version).request
		}}
	}
	own := tokenOf(clientNames()[0])
	ways := []*way{with(plain, own, legacy), with(full, token, legacy), with(plain, own, modern), with(full, token, modern)}
	times := timed(ways, calls, "tools/call", echo)
	rate := make([]float64, len(ways))
	const rounds = 4
	for range rounds {
		for i, w := range ways {
			rate[i] += float64(hammer(w, load/rounds)) / load.Seconds()
		}
	}
	p50 := func(i int) float64 { return ms(times[i][len(times[i])/2]) }
	fmt.Printf("| with access tokens, a store, limits, 100 profiles and 1,000 rules by group: call, p50, ms more than without | | | | %+.2f | %+.2f |\n", p50(1)-p50(0), p50(3)-p50(2))
	fmt.Printf("| the same: calls a second, relative to those without | | | | %.0f %% | %.0f %% |\n", 100*rate[1]/rate[0], 100*rate[3]/rate[2])
}

// newFull starts such a service, and returns a token for it.
func newFull() (gateway, string) {
	work := os.Getenv("WORK")
	redis := freeAddress()
	_, port, _ := net.SplitHostPort(redis)
	store := exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", work, "--loglevel", "warning")
	if err := store.Start(); err != nil {
		log.Fatal(err)
	}
	listening(store, redis, "")
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		log.Fatal(err)
	}
	issuer := keysAddress(key)
	address := freeAddress()
	audience := "http://" + address + "/mcp"
	profiles, rules := map[string]any{}, []any{}
	for i := range 100 {
		profiles[fmt.Sprintf("p%d", i)] = map[string]any{"server": []string{"s1"}, "groups": []string{fmt.Sprintf("profile-%d", i)}}
	}
	for i := range 1000 {
		rules = append(rules, map[string]any{"group": fmt.Sprintf("team-%d", i), "tool": "s1__*", "decision": "deny"})
	}
	text, err := json.Marshal(map[string]any{
		"mcpServers": map[string]any{"s1": map[string]any{"command": "stub", "trust": true}},
		"policy":     map[string]any{"rules": rules},
		"serve": map[string]any{
			"store": "redis://" + redis, "stateKey": rand.Text() + rand.Text(), "profiles": profiles,
			"limits": []any{map[string]any{"calls": 1 << 30, "per": "24h"}},
			"oauth":  map[string]any{"issuer": issuer, "audience": audience, "jwksUri": issuer + "/keys"},
		}})
	if err != nil {
		log.Fatal(err)
	}
	file := filepath.Join(work, "many.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		log.Fatal(err)
	}
	cmd := exec.Command("toolreg", "--quiet", "--settings", file, "serve", "--source", "mcp:*", "--http", address)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		log.Fatal(err)
	}
	claims := map[string]any{"iss": issuer, "aud": audience, "sub": "alice", "exp": time.Now().Add(24 * time.Hour).Unix(), "groups": []string{"staff", "profile-7", "team-lead"}}
	return listening(cmd, address, "/mcp"), signed(key, claims)
}

// keysAddress serves the public key of an issuer, whose address it returns.
func keysAddress(key *ecdsa.PrivateKey) string {
	public, err := key.PublicKey.Bytes()
	if err != nil {
		log.Fatal(err)
	}
	set := map[string]any{"keys": []any{map[string]any{"kty": "EC", "crv": "P-256", "kid": "1", "alg": "ES256", "use": "sig", "x": encoded(public[1:33]), "y": encoded(public[33:])}}}
	address := freeAddress()
	go func() {
		log.Fatal(http.ListenAndServe(address, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(set) })))
	}()
	return "http://" + address
}

// signed returns a JSON Web Token.
func signed(key *ecdsa.PrivateKey, claims map[string]any) string {
	body, err := json.Marshal(claims)
	if err != nil {
		log.Fatal(err)
	}
	text := encoded([]byte(`{"alg":"ES256","kid":"1","typ":"at+jwt"}`)) + "." + encoded(body)
	sum := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
	if err != nil {
		log.Fatal(err)
	}
	return text + "." + encoded(append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...))
}

func encoded(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }
