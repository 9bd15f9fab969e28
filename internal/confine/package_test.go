package confine

import "testing"

// A file in node_modules belongs to the package in the last one, with its scope.
func TestPackageOfAFile(t *testing.T) {
	for path, want := range map[string]string{
		"/absent/node_modules/x/cli.js":                "/absent/node_modules/x",
		"/absent/node_modules/@a/x/cli.js":             "/absent/node_modules/@a/x",
		"/absent/node_modules/x/node_modules/y/cli.js": "/absent/node_modules/x/node_modules/y",
		"/node_modules/x/cli.js":                       "/node_modules/x",
		"/absent/node_modules/.bin/x":                  "",
		"/absent/x/cli.js":                             "",
		"/absent/node_modules":                         "",
	} {
		if got := packageOf(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
