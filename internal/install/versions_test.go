package install

import "testing"

func TestCompareVersions(t *testing.T) {
	order := []string{"0.9", "1.0.0-beta.2", "1.0.0", "1.2.0", "1.10.0", "2025.8.4", "2025.11.25"}
	for i := range order {
		for j := range order {
			if got := CompareVersions(order[i], order[j]); (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("%s and %s: %d", order[i], order[j], got)
			}
		}
	}
	if CompareVersions("1.2.3.9", "1.2.3.10") >= 0 || CompareVersions("2025.08.04", "2025.08.04") != 0 {
		t.Error("numbers of other versions are not compared as such")
	}
}
