package shell_test

import (
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
)

// A rule with all words of a runner's command allows it, whatever it runs, unless another rule
// denies that.
func TestRuleAllowsRunner(t *testing.T) {
	for _, tt := range []struct {
		allow, deny, line string
		want              policy.Decision
	}{
		{"uv run pytest tests", "curl", "uv run pytest tests", policy.Allow},
		{"uv run pytest tests", "curl", "uv run pytest other", policy.Ask},
		{"uv run pytest", "curl", "uv run pytest -x tests", policy.Allow},
		{"uv run pytest", "curl", "uv run pytest -p evil", policy.Ask},
		{"uv run", "curl", "uv run --with evil pytest", policy.Ask},
		{"uv run", "curl", "uv run --env-file f pytest", policy.Ask},
		{"uv", "pytest", "uv run pytest -x", policy.Deny},
		{"uv run", "curl", "uv run evil", policy.Ask},
		{"bun run", "curl", "bun run build", policy.Allow},
		{"bun run", "curl", "bun run --preload ./x build", policy.Ask},
		{"bun run", "rm", "bun run rm x", policy.Deny},
		{"yarn run", "curl", "yarn run build", policy.Allow},
		{"pytest", "curl", "uv run pytest tests", policy.Ask},
		{"uv run pytest tests", "pytest", "uv run pytest tests", policy.Deny},
		{"uv run *", "curl", "uv run $x", policy.Ask},
		{"npx tsc", "curl", "npx tsc --noEmit", policy.Allow},
		{"npx tsc", "tsc", "npx tsc --noEmit", policy.Deny},
		{"npx", "curl", "npx -p evil tsc --noEmit", policy.Ask},
		{"pnpm build", "curl", "pnpm build", policy.Allow},
		{"npx uv run id", "curl", "npx uv run id", policy.Allow},
		{"go run", "rm", "go run .", policy.Allow},
		{"go run", "rm", "go run -race .", policy.Allow},
		{"go run . -f x", "rm", "go run . -f x", policy.Allow},
		{"bun run", "rm", "bun run .", policy.Allow},
		{"go run", "rm", "go run $x", policy.Ask},
		{"go run", "rm", "go run evil.test/x@latest", policy.Ask},
		{"go run x.test/y@v1", "rm", "go run x.test/y@v1", policy.Allow},
	} {
		p := &policy.Policy{Rules: append(entries(t, policy.Deny, "run_shell_command("+tt.deny+")"), entries(t, policy.Allow, "run_shell_command("+tt.allow+")")...)}
		if v := p.Decide(t.Context(), shellTool(tt.line), registry.Call{}); v.Decision != tt.want {
			t.Errorf("%q allowed, %q denied: %s: %s (%s), want %s", tt.allow, tt.deny, tt.line, v.Decision, v.Reason, tt.want)
		}
	}
	p := &policy.Policy{Rules: append(entries(t, policy.Allow, "run_shell_command(ls)"), entries(t, policy.Deny, "run_shell_command(pytest)")...)}
	if v := p.Decide(t.Context(), shellTool("uv run pytest"), registry.Call{}); v.Decision != policy.Deny {
		t.Errorf("a rule on another command comes first: %s (%s)", v.Decision, v.Reason)
	}
}

// A rule that denies a command also denies its other names: abbreviations, aliases
// of the program, and aliases that the line defines.
func TestDenyKnowsOtherNames(t *testing.T) {
	for _, tt := range []struct{ rule, denied, other string }{
		{"rm", "/opt/homebrew/bin/grm x", "gls rm"},
		{"rm -rf", "grm -fr x", "grm x"},
		{"npm publish", "npm publ", "npm pkg get name"},
		{"npm publish", "npm --silent pub", "npm pack"},
		{"npm install", "npm i x", "npm init"},
		{"npm install", "npm add x", "npm audit"},
		{"npm i", "npm install x", "npm ci"},
		{"npm init", "npm ini x", "npm in x"}, // npm install
		{"npm update", "npm upg x", "npm upx x"},
		{"npm exec", "npm x cowsay", "npm explain x"},
		{"git push", "git -c alias.p=push p", "git -c alias.p=pull p"},
		{"git push", "git -c ALIAS.P='push --force' p origin", "git -c alias.q=push log"},
		{"git push", "git -c alias.p='!git push' p", "git -c user.name=push log"},
		{"git push", "git config alias.p push", "git config user.name push"},
		{"sort", "git -c core.pager=sort -p log", "git -c core.pager=cat -p log"},
		{"id", "tar cf a --use-comp=id b", "tar cf a --use-comp=cat b"},
		{"id", "tar xf a -I id", "tar xf a -X id"},
		{"id", "make -l --eval='x:;id'", "make -l id"},
		{"id", "sort -t --compress-program=id a", "sort -t id a"},
		{"id", "kubectl get pods --kubeconfig=id", "kubectl get pods --selector=id"},
		{"git push", "git p", "git log p"},
		{"git push", "git -p p origin", "git rerere push"},
		{"id", "uv run id", "uv run pytest -k id"},
		{"id", "uv run --with x -q id", "uv run --with id pytest"},
		{"id", "uv run --unknown x id", "uv run --unknown x pytest"},
		{"id", "uv --unknown x run id", "uv pip install id"},
		{"id", "uv --unknown run run id", "uv sync --unknown id"},
		{"id", "uv tool run --from x id@1.0", "uv tool install id"},
		{"id", "uv run sh -c 'ls; id'", "uv run sh -c 'echo id'"},
		{"id", "python3 -m uv run id", "python3 -m pytest id"},
		{"pip install", "python3 -m pip install x", "python3 -m pip list"},
		{"prisma migrate", "npx -y prisma@5.1 migrate reset", "npx -y prisma@5.1 generate"},
		{"prisma migrate", "npm exec -- prisma migrate reset", "npm install prisma migrate"},
		{"prisma migrate", "npm --unknown v x prisma migrate", "npm run prisma migrate"},
		{"prisma migrate", "npm exe prisma migrate", "npm explain prisma migrate"},
		{"prisma migrate", "pnpm prisma migrate", "pnpm add prisma migrate"},
		{"prisma migrate", "pnpm --filter web exec prisma migrate", "pnpm --filter web exec prisma generate"},
		{"prisma migrate", "yarn workspace web prisma migrate", "yarn workspace prisma build"},
		{"prisma migrate", "yarn prisma migrate", "yarn set version migrate"},
		{"prisma migrate", "bunx prisma migrate", "bun prisma generate"},
		{"prisma migrate", "bun x prisma migrate", "bun add prisma migrate"},
		{"id", "pnpm dlx @scope/id", "pnpm remove id"},
		{"id", "bundle exec id", "bundle install"},
		{"id", "pyenv exec id", "pyenv install id"},
		{"id", "rbenv exec id", "rbenv shell id"},
		{"id", "poetry run id", "poetry add id"},
		{"id", "pipenv run id", "pipenv install id"},
		{"id", "direnv exec . id", "direnv exec id ls"},
		{"id", "mise exec node@22 -- id", "mise use id"},
		{"id", "nix run nixpkgs#id", "nix run nixpkgs#ls"},
		{"id", "nix shell nixpkgs#x -c id", "nix shell nixpkgs#x -c ls"},
		{"id", "nix-shell -p x --run 'ls; id'", "nix-shell -p id --run ls"},
		{"id", "go run example.com/cmd/id@latest", "go run ./cmd/ids"},
		{"id", "/lib64/ld-linux-x86-64.so.2 /usr/bin/id", "/lib64/ld-linux-x86-64.so.2 --preload /x/id /bin/ls"},
		{"id", "busybox id", "busybox ls id"},
		{"id", "coreutils --coreutils-prog=id", "coreutils ls id"},
		{"id", "uv $x id", "uv sync $x id"},
		{"id", "sops exec-env s.yaml 'id -u'", "sops exec-env s.yaml 'ls id'"},
		{"id", "npx concurrently 'id -u'", "npx concurrently 'ls id'"},
		{"id", "deno run npm:id@1.0", "deno run id.ts"},
		{"id", "tmux new-session -d id", "tmux kill-server"},
		{"id", "agetty -l /usr/bin/id tty1", "agetty -f id tty1"},
		{"id", "agetty -nl id tty1", "agetty -n tty1 id"},
		{"id", "agetty --login-prog=/usr/bin/id tty1", "agetty --host=id tty1"},
		{"id", "capsh --shell=/usr/bin/id -- x", "capsh --drop=cap_chown -- -c ls"},
		{"id", "capsh --user=nobody -- -c 'ls; id'", "capsh --user=nobody -- -c ls"},
		{"id", "start-stop-daemon --start --exec=/usr/bin/id", "start-stop-daemon --start --exec=/bin/ls"},
		{"id", "start-stop-daemon -S -x/usr/bin/id", "start-stop-daemon -S -x/bin/ls"},
		{"id", "npm explore x -- id", "npm explore id ls"},
		{"id", "doppler run --command='ls; id'", "doppler run --command='ls id'"},
		{"id", "cross-env-shell 'ls; id'", "cross-env-shell 'ls id'"},
		{"id", "systemd-run -p ExecStopPost=/usr/bin/id true", "systemd-run -p Description=x true"},
		{"id", "systemd-nspawn --property=ExecStopPost=id -D x ls", "systemd-nspawn --property=Description=x -D x ls"},
		{"id", "guix environment --exec='id -u' x", "guix environment --exec='ls id' x"},
		{"id", "msgfilter -i f id", "msgattrib -i f id"},
		{"id", "install --strip-program=id a b", "install -m 755 id b"},
		{"cargo publish", "cargo watch -x publish", "cargo watch -x check"},
		{"cargo publish", "cargo watch --exec 'publish --dry-run'", "cargo watch -x 'check -p publish'"},
		{"cargo publish", "cargo watch -- cargo publish", "cargo watch -- cargo check"},
		{"cargo publish", "cargo +nightly publish", "cargo +nightly build"},
		{"cargo publish", "cargo p", "cargo package"}, // an alias in .cargo/config.toml
		{"id", "cargo watch -s 'ls; id'", "cargo watch -s 'ls id'"},
		{"pip install", "python3 -I -m pip install x", "python3 -I -m pip list"},
		{"pip install", "python3 -Im pip install x", "python3 -Im pip list"},
		{"pip install", "python3 -mpip install x", "python3 -mpip list"},
		{"pip install", "python3 -I -mpip install x", "python3 -I x.py install"},
		{"pip install", "python3 -W ignore -X dev -mpip install x", "python3 -W -mpip install.py"},
		{"python3 -m pip", "python3 -BImpip install x", "python3 -BI pip"},
	} {
		p := &policy.Policy{Mode: policy.ModeYolo, Rules: entries(t, policy.Deny, "run_shell_command("+tt.rule+")")}
		if v := p.Decide(t.Context(), shellTool(tt.denied), registry.Call{}); v.Decision != policy.Deny || strings.Contains(v.Reason, "check failed") {
			t.Errorf("%q denied: %s %s (%s)", tt.rule, tt.denied, v.Decision, v.Reason)
		}
		if v := p.Decide(t.Context(), shellTool(tt.other), registry.Call{}); v.Decision != policy.Allow {
			t.Errorf("%q denied: %s %s (%s)", tt.rule, tt.other, v.Decision, v.Reason)
		}
	}
}
