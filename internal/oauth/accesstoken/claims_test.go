package accesstoken

import (
	"testing"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// A claim with groups may be elsewhere itself, or what contains it, or within it.
func TestGroupsElsewhere(t *testing.T) {
	for claims, refused := range map[string]bool{
		`{"_claim_names": {"realm.my.groups": "s"}}`:                             true,
		`{"_claim_names": {"realm": "s"}}`:                                       true,
		`{"_claim_names": {"realm.my": "s"}}`:                                    true,
		`{"realm": {"_claim_names": {"my": "s"}}}`:                               true,
		`{"realm": {"my": {"_claim_names": {"groups": "s"}}}}`:                   true,
		`{"realm": {"other": 1}, "_claim_names": {"realm": "s"}}`:                true,
		`{"_claim_names": {"address": "s"}}`:                                     false,
		`{"_claim_names": {"my": "s"}}`:                                          false,
		`{"realm": {"my": {"groups": ["a"]}}, "_claim_names": {"address": "s"}}`: false,
		`{"_claim_names": "realm"}`:                                              false,
		`{}`:                                                                     false,
	} {
		n, err := jsonx.Parse([]byte(claims), jsonx.Options{})
		if err != nil {
			t.Fatal(err)
		}
		v := &Verifier{config: Config{Groups: "realm.my.groups"}}
		if groups, err := v.groups(n); (err != nil) != refused {
			t.Errorf("%s: %q, %v", claims, groups, err)
		}
	}
}
