package expand_test

import (
	"testing"

	"github.com/toolreg/toolreg/internal/expand"
)

func TestSteers(t *testing.T) {
	for _, name := range []string{"NODE_OPTIONS", "node_options", "NODE_PATH", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "HTTPS_PROXY", "http_proxy", "HOME", "XDG_CONFIG_HOME", "PYTHONPATH", "BASH_ENV", "ENV", "SHELL", "GIT_SSH_COMMAND", "GIT_CONFIG_COUNT", "LD_PRELOAD", "npm_config_registry", "PATH", "DOTNET_STARTUP_HOOKS"} {
		if !expand.Steers(name) {
			t.Errorf("%s does not count", name)
		}
	}
	for _, name := range []string{"", "API_KEY", "GITHUB_TOKEN", "NODE_ENV", "PYTHONUNBUFFERED", "PYTHONIOENCODING", "LOG_LEVEL", "HOMEPAGE", "GIT_AUTHOR_NAME", "DATABASE_URL", "ENVIRONMENT", "TZ", "LANG", "DEBUG"} {
		if expand.Steers(name) {
			t.Errorf("%s counts", name)
		}
	}
	for _, name := range expand.CodeFolders() {
		if !expand.Steers(name) {
			t.Errorf("%s names code that programs load, and does not count", name)
		}
	}
}
