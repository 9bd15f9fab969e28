package shell

import (
	"slices"
	"strconv"
	"strings"
)

// guardGit returns the environment with a setting that makes git use an
// embedded bare repository only if it is named explicitly. Otherwise git would
// run commands from the configuration of files in the workspace that look like
// a repository.
func guardGit(env []string) []string { return withGitSetting(env, "safe.bareRepository", "explicit") }

func withGitSetting(env []string, key, value string) []string {
	const variable = "GIT_CONFIG_COUNT="
	count := 0
	out := slices.Clone(env)
	if i := slices.IndexFunc(out, func(e string) bool { return strings.HasPrefix(e, variable) }); i >= 0 {
		n, err := strconv.Atoi(out[i][len(variable):])
		if err != nil || n < 0 {
			return env // git rejects such an environment
		}
		count = n
		out = slices.Delete(out, i, i+1)
	}
	n := strconv.Itoa(count)
	return append(out, variable+strconv.Itoa(count+1), "GIT_CONFIG_KEY_"+n+"="+key, "GIT_CONFIG_VALUE_"+n+"="+value)
}
