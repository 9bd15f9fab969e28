package mcpclient

import "testing"

func TestMask(t *testing.T) {
	raw := stdioServer(t)
	raw.Env = append(raw.Env, pair("PLAIN", "visible"), pair("FROM_ENV", "$X"), pair("MY_KEY", "k3y-value"), pair("SHORT_KEY", "on"))
	expanded := raw
	expanded.Env = append(raw.Env[:0:0], raw.Env...)
	expanded.Env[3].Value = "expanded-value"
	expanded.Headers = append(expanded.Headers, pair("Authorization", "Bearer tok-tok"))
	expanded.URL = "https://u:passw0rd@example.com/x?api=qwertz1"
	got := newReplacer(raw, expanded).Replace("visible on expanded-value k3y-value tok-tok https://u:passw0rd@example.com/x?api=qwertz1")
	if want := "visible on *** *** *** https://u:***@example.com/x?***"; got != want {
		t.Errorf("got %s", got)
	}
}
