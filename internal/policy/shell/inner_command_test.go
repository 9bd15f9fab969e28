package shell

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A command in the arguments of another one is found, and a word that only looks like one
// is not.
func TestCommandsInArguments(t *testing.T) {
	for _, tt := range []struct {
		line, rule string
		want       Certainty
	}{
		{"ip netns exec ns rm x", "rm", Yes},
		{"ip net ex ns rm x", "rm", Yes},
		{"ip netns exec ns ls", "netns", No},
		{"ip netns exec", "rm", No},
		{"ip -b commands", "rm", Maybe},
		{"ip -batch commands", "rm", Maybe},
		{"ip - rm", "rm", No},
		{"ip addr show rm", "rm", No},
		{"ip $x", "rm", Maybe},
		{`ip -"$x" f`, "rm", Maybe},
		{`ip '-'"$x" f`, "rm", Maybe},
		{`ip 'addr'"$x" f`, "rm", No},
		{"trap 'rm x' EXIT", "rm", Yes},
		{"trap -- 'rm x' EXIT", "rm", Yes},
		{"trap", "rm", No},
		{"trap rm", "rm", No},
		{"trap --", "rm", No},
		{"trap \"$x\" EXIT", "rm", Maybe},
		{"readonly rm x", "rm", No},
		{"read -e x", "rm", No},
		{"read 'a[1]'", "rm", No},
		{`read "$x"`, "rm", No},
		{`read "a[$x]"`, "rm", Maybe},
		{"export -f g", "rm", No},
		{"export PAGER=less", "rm", No},
		{"unset -f g", "rm", No},
		{"enable -f ./x.so y", "rm", Maybe},
		{"complete -C 'rm x' y", "rm", Maybe},
		{"jobs -x rm x", "rm", Yes},
		{"jobs -l", "rm", No},
		{". ./x.sh", "rm", No},
		{"source ./x.sh rm", "rm", No},
		{". \"$x\"", "rm", Maybe},
		{"source \"$x\"", "rm", Maybe},
		{". /dev/fd/3", "rm", Maybe},
		{"source /proc/self/fd/3", "rm", Maybe},
		{". /dev/stdin <<< 'rm x'", "rm", Yes},
		{"source /dev/stdin <<< 'rm x'", "rm", Yes},
		{"bash -c 'rm x'", "rm", Yes},
		{"bash --norc -c 'rm x'", "rm", Yes},
		{"bash -c -- 'rm x'", "rm", Yes},
		{"bash --rcfile f -c 'rm x'", "rm", Yes},
		{"bash --init-file f -c 'rm x'", "rm", Yes},
		{"bash -o posix -c 'rm x'", "rm", Yes},
		{"bash -co posix 'rm x'", "rm", Yes},
		{"bash +O extglob -c 'rm x'", "rm", Yes},
		{"bash --rcfile f x.sh", "rm", No},
		{"bash --rcfile \"$x\" y.sh", "rm", Maybe},
		{"bash --rcfile", "rm", Maybe},
		{"bash x.sh rm", "rm", No},
		{"bash \"$x\"", "rm", Maybe},
		{"bash /dev/fd/3", "rm", Maybe},
		{"bash /dev/tty", "rm", Maybe},
		{"bash fd/stdin", "rm", Maybe},
		{"bash /proc/self/fd/3", "rm", Maybe},
		{"bash /dev/stdin <<< 'rm x'", "rm", Yes},
		{"bash -s x <<< 'rm x'", "rm", Yes},
		{"bash /dev/stdin x <<< 'rm x'", "rm", Yes},
		{"bash x.sh <<< 'rm x'", "rm", No},
		{"bash <<< \"$x\"", "rm", Maybe},
		{"env -S 'ls a'", "rm", No},
		{"env -S \"$x\"", "rm", Maybe},
		{"env -S 'ls ${x}'", "rm", Maybe},
		{"env -u rm ls", "rm", No},
		{"nice 'ls; rm x'", "rm", No},
		{"su -l nobody", "rm", Maybe},
		{"su nobody ls", "rm", No},
		{"unshare -r", "rm", Maybe},
		{"unshare -r <<< ls", "rm", No},
		{"unshare -r <<< 'rm x'", "rm", Yes},
		{"unshare -r <<< \"$x\"", "rm", Maybe},
		{"xargs -I% % x", "rm", Maybe},
		{"xargs -n 1 1", "rm", No},
		{"uv --unknown x run ls", "x", No},
		{"uv $x ls", "rm", No},
		{"uv run 'rm x'", "rm", Yes},
		{"uv run 'echo x'", "rm", No},
		{"mise exec -c 'ls;rm x'", "rm", Yes},
		{"mise exec -c 'ls x'", "rm", No},
		{"devbox run 'ls && rm x'", "rm", Yes},
		{"cargo watch -x 'run; rm x'", "rm", Yes},
		{"cargo watch -x 'run; ls'", "cargo run", Yes},
		{"hyperfine --prepare='ls;rm x' ls", "rm", Yes},
		{"hyperfine ls --cleanup='rm x'", "rm", Yes},
		{"hyperfine ls --cleanup='ls rm'", "rm", No},
		{"pnpm -c exec 'rm x'", "rm", Yes},
		{"git-push origin", "git push", Yes},
		{"/usr/lib/git-core/git-send-pack --force x", "git push -f", Yes},
		{"git-pull", "git push", No},
		{"git-tool", "git push", No},
		{"minikube -p x kubectl -- delete pod y", "kubectl delete", Yes},
		{"minikube kubectl get", "kubectl delete", No},
		{"minikube start docker", "docker", No},
		{"socat - EXEC:'rm x',pty", "rm", Yes},
		{"socat TCP4:rm:1 SYSTEM:'ls;rm x'", "rm", Yes},
		{"expect -c 'spawn rm x'", "rm", Yes},
		{"rush 'rm {}'", "rm", Yes},
		{"nu -c 'ls; rm x'", "rm", Yes},
		{"nu x.nu", "rm", No},
		{"npx @scope/rm", "rm", Yes},
		{"nice A=b rm x", "rm", No},
		{"nice -Zw", "w", Yes},
		{"nice --adj rm ls", "rm", Yes},
		{"python3 -Wm pip install x", "pip install", No},
		{"ldapsearch rm", "rm", No}, // not ld.so
		{"env A=b rm x", "rm", Yes},
		{"env -- A=b rm x", "rm", Yes},
		{"env ls A=b", "rm", No},
		{"env --", "rm", No},
		{"env -- A=b PAGER='rm x' ls", "rm", Yes},
		{"env -i A=b C=d ls rm", "rm", No},
		{"su -l nobody -c ls", "rm", No},
		{"sg g -c 'rm x'", "rm", Yes},
		{"sg g -c \"$x\"", "rm", Maybe},
		{"x=rm; $x y", "rm", Yes},
		{"x=rm ls; $x y", "rm", Maybe},
		{"x=; ${x:-rm} y", "rm", Yes},
		{"x=rm; ${#x} y", "rm", Maybe},
		{"x=rm; ${!x} y", "rm", Maybe},
		{"x=rm; ${x[1]} y", "rm", Maybe},
		{"$(echo rm x)", "rm", Yes},
		{"$(cat rm) y", "rm", Maybe},
		{"$( (echo rm) ) y", "rm", Maybe},
		{`"$(echo rm x)"`, "rm", Maybe}, // a single word
		{"a[1]=rm; $a y", "rm", Maybe},
		{"for x in rm ls; do $x y; done", "rm", Yes},
		{"PROMPT_COMMAND=(ls 'rm x')", "rm", Yes},
		{"PROMPT_COMMANDS=('rm x')", "rm", No},
		{"time -- rm a=b", "rm", Yes},
		{"time -- A=b rm x", "rm", Yes},
		{"time -- A=b C=d rm x", "rm", Yes},
		{"time -- ls rm", "rm", No},
		{"bash -c 'ls' <<< 'rm x'", "rm", No},
		{"bash -c '$0' ls", "rm", Maybe},
		{"bash -c \"$x\"", "rm", Maybe},
		{"bash -c \"ls $x\"", "rm", Maybe},
		{"bash -ec ls rm", "rm", No},
		{"find . -exec ls {} ';' -exec rm {} ';'", "rm", Yes},
		{"find . -name rm", "rm", No},
		{"find . -exec", "rm", No},
		{"find . -exec {} x ';'", "rm", Maybe},
		{"git --version", "git push", No},
		{"git -c a.b=c", "git push", No},
		{"git -c a.b=c p", "git push", Maybe},
		{"git -c alias.p=log p", "git push", No},
		{"sed 'e x' f", "rm", Maybe},
		{`sed "s/a/$b/" f`, "rm", No},
		{`sort --compress-program="a$x" f`, "rm", Maybe},
		{"sort --compress-program= f", "rm", Maybe},
		{`tar "c${z}I" 'rm x' b`, "rm", Yes},
		{"tar $x cI 'rm x' b", "rm", Yes},
		{"tar cf", "rm", No},
		{`cargo watch -s "a$x"`, "rm", Maybe},
		{"git bisect run rm x", "rm", Yes},
		{"git bisect start rm x", "rm", No},
		{"git submodule foreach rm x", "rm", Yes},
		{"git submodule foreach --recursive 'rm x'", "rm", Yes},
		{"git submodule foreach -q --recursive rm x", "rm", Yes},
		{"git submodule foreach --recursive", "rm", No},
		{"git submodule add rm", "rm", No},
		{"git fetch --upload-pack='A=b' \"$x\"", "rm", Maybe},
		{"git fetch --upload-pack=ls x", "rm", No},
		{"git fetch --upload-pack=rm x", "rm", Yes},
	} {
		got := No
		for _, c := range Read(Bash, tt.line, "").Commands {
			got = max(got, c.Names(tt.rule))
		}
		if got != tt.want {
			t.Errorf("%q runs %s: %d, want %d", tt.line, tt.rule, got, tt.want)
		}
	}
}

// A function that starts itself beside other commands never ends, unlike one that calls
// itself.
func TestForkBombs(t *testing.T) {
	functions := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "f%d() { ls; }; ", i)
		}
		return b.String()
	}
	for line, want := range map[string]bool{
		functions(maxFunctions):                   false,
		functions(maxFunctions + 1):               true, // too many to look at
		":(){ :|:& };:":                           true,
		"f() { f | f; }; f":                       true,
		"f() { f |& f; }; f":                      true,
		"f() { f & }; f":                          true,
		"f() { true && f; }; f":                   false,
		"f() { f; }; f":                           false,
		"f() { { A=b; } & }; f":                   false,
		"f() { ls | cat; }; f &":                  false,
		"f() { g & }; g() { h; }; h() { f; }; f":  true,
		"f() { g & }; g() { h; }; h() { ls; }; f": false,
	} {
		bomb := slices.ContainsFunc(Read(Bash, line, "").Commands, func(c Command) bool { return c.Catastrophic != "" })
		if bomb != want {
			t.Errorf("%q starts copies of itself: %t", line, bomb)
		}
	}
}

// An "always" answer covers the words that the person has seen, and no shorter command
// unless it runs confined.
func TestLimitsOfCovers(t *testing.T) {
	for _, tt := range []struct {
		cover, line string
		confined    bool
		want        bool
	}{
		{"python", "python -c 'print(1)' x", false, false},
		{"python", "python -c 'print(1)' x", true, true},
		{"python -c", "python -c 'print(1)' x", true, true},
		{"ruby", "python -c 'print(1)' x", true, false},
		{"ls; rm", "python -c 'print(1)' x", true, false},
		{"", "python -c 'print(1)' x", true, false},
		{"git", "git status", true, false},
		{"git log", "git log --output=F", false, false},
		{"git status a b", "git status", false, false},
	} {
		if got := command(t, tt.line).Covered(tt.cover, tt.confined); got != tt.want {
			t.Errorf("%q by %q, confined %t: %t", tt.line, tt.cover, tt.confined, got)
		}
	}
	for length, want := range map[int]bool{120: true, 121: false} { // what is longer cannot be read at a glance
		line := "python -c " + strings.Repeat("x", length-len("python -c "))
		if got := command(t, line).Cover(); (got == line) != want {
			t.Errorf("%d bytes: %q", length, got)
		}
	}
	for cover, want := range map[string]CoverKind{
		"": CoversNothing, "git": CoversNothing, "ls; rm": CoversNothing, "ls $(id)": CoversNothing, "$x": CoversNothing,
		"ls": CoversPrefix, "git status": CoversPrefix, "npm test": CoversPrefix, "python -c 'print(1)'": CoversExactly,
	} {
		if got := KindOfCover(cover); got != want {
			t.Errorf("%q: kind %d, want %d", cover, got, want)
		}
	}
}

// An option of set or shopt that may change how shells read the rest of a line is a reason
// not to trust the reading, unlike parameters.
func TestOptionsThatChangeReading(t *testing.T) {
	for line, want := range map[string]bool{
		"set -a; . ./.env; set +a": false, "set -o allexport": false, "set -v": false,
		"set -eu": false, "set -o pipefail": false, "set -- posix x": false, "set a -o posix": false, "set -e a posix": false, "shopt -s nullglob": false,
		"set -o posix": true, "set -k": true, "set -e -o posix": true, "set +o posix": true, "set \"$x\"": true, "shopt -s extglob": true, "shopt extglob": true, "shopt -e": true, "set -s": true, "set -q": true,
	} {
		unread := slices.ContainsFunc(Read(Bash, line+"; ls", "").Commands, func(c Command) bool { return c.Unread })
		if unread != want {
			t.Errorf("%q changes how the line is read: %t", line, unread)
		}
	}
}

// $HOME and $PWD are as well known as ~ and ".", unless the line may set them.
func TestVariablesOfFolders(t *testing.T) {
	for line, want := range map[string]Certainty{
		`. "$HOME/x.sh"`: No, `source $HOME/x.sh`: No, `. "${HOME}"/x.sh; ls`: No, `bash "$HOME/x.sh"`: No, `"$PWD/x" rm`: No, `$PWD/x`: No,
		`sh -c '. "$HOME/x.sh"'`: No, `cd x; . "$PWD/y"`: No, `. "$HOME"`: No,
		`"$HOME/rm" x`: Yes, `$PWD/rm x`: Yes,
		`. "$HOME.old/x"`: Maybe, `. "$HOMES/x"`: Maybe, `. "$OLDPWD/x"`: Maybe, `. "$x$HOME/y"`: Maybe, `. "${HOME:-/dev}/fd/x.sh"`: Maybe, `. "${HOME%x}/y"`: Maybe,
		`HOME=/dev; . "$HOME/fd/x.sh"`: Maybe, `. "$HOME/fd/x.sh"; export H"OM"E=/dev`: Maybe, `read -r HO\ME; . "$HOME/x.sh"`: Maybe, `read $'HO\x4dE'; . "$HOME/x.sh"`: Maybe,
		`env HOME=/dev sh -c '. "$HOME/fd/x.sh"'`: Maybe, `IFS=m; $HOME/x`: Maybe, `PWD=/dev; . "$PWD/fd/x.sh"`: Maybe, `. "$HOME/../dev/fd/3"`: Maybe,
	} {
		got := No
		for _, c := range Read(Bash, line, "").Commands {
			got = max(got, c.Names("rm"))
		}
		if got != want {
			t.Errorf("%s: %v, want %v", line, got, want)
		}
	}
}
