package serve

import (
	"testing"

	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/serve/offer"
	"github.com/toolreg/toolreg/internal/settings"
)

// Clients with access tokens have no labels of their own in the metrics, because there may be any
// number of them, unless the settings name them.
func TestLabelsOfClients(t *testing.T) {
	set := &settings.Settings{CallLimits: []settings.CallLimit{{Client: "ci"}, {Client: "a*"}}}
	o := &offer.Offer{Session: &engine.Session{Settings: set}}
	for _, claimed := range []bool{false, true} {
		for client, want := range map[string]string{"ci": "ci", "a*": "other", "anna": "other"} {
			if !claimed {
				want = client // of the token file
			}
			if got := labelOf(client, claimed, o); got != want {
				t.Errorf("%s, of an access token: %t: label %s", client, claimed, got)
			}
		}
	}
}
