package shell

import (
	"slices"
	"strings"
	"testing"
)

// The command of a rule is compared with a part word by word, its program by the last
// element of its path and without case.
func TestCommandOfRule(t *testing.T) {
	for _, tt := range []struct {
		line, rule string
		begins     bool
		names      Certainty
	}{
		{"git log -1", "git log", true, Yes},
		{"git log", "git log -1", false, No},
		{"git --no-pager log -1", "git log", true, Yes},
		{"git --no-pager log -1", "git --no-pager", true, Yes},
		{"git --exec-path=x log -1", "git log", false, Yes},
		{"npm -w web run build", "npm run build", true, Yes},
		{"npm --prefix x run build", "npm run build", false, Yes},
		{"kubectl -n x get pods", "kubectl get", true, Yes},
		{"kubectl -n x apply -f y", "kubectl -n", false, Yes},
		{"kubectl -n x apply -f y", "kubectl apply", true, Yes},
		{"git log -1", "git", true, Yes},
		{"git log", "hg log", false, No},
		{"git log", "git *", true, Yes},
		{"git push -uf", "git push -f", false, Yes},
		{"git push -u origin", "git push -f", false, No},
		{"kubectl delete -vn x -n prod", "kubectl delete -n prod", false, Yes},
		{"kubectl delete -vn x -n test", "kubectl delete -n prod", false, No},
		{"docker run --privileged=true x", "docker run --privileged", false, Yes},
		{"docker run --privileged-x x", "docker run --privileged", false, No},
		{"python -Ic x", "python -c", false, Yes},
		{"sed -i.bak s/a/b/ f", "sed -i", false, Yes},
		{"go test -coverprofile=x", "go test -v", false, No},
		{"go test --v", "go test -v", false, Yes},
		{"terraform apply --auto-approve", "terraform apply -auto-approve", false, Yes},
		{"npm test -x", "npm test --", false, No},
		{"cat -", "cat -x", false, No},
		{"cat -v", "cat v", false, No},
		{"foo -x", "foo --", false, No},
		{"foo -uf", "foo -f", false, Yes},
		{"foo ''", "foo -f", false, No},
		{"foo --force-x", "foo --force", false, No},
		{"foo -x-force", "foo --force", false, No},
		{"foo --foo", "foo -f", false, No},
		{"git push -f", "git push --force", false, Yes},
		{"git push -uf origin", "git push --force", false, Yes},
		{"git push origin main --force", "git push -f", false, Yes},
		{"git push origin main --force", "git push --force origin", false, Yes},
		{"git push origin main", "git push --force origin", false, No},
		{"git push --force-with-lease", "git push --force", false, No},
		{"git push origin +main", "git push --force", false, Yes},
		{"git push origin :main", "git push --delete", false, Yes},
		{"git push origin a:main", "git push --delete", false, No},
		{"git push -uqv origin", "git push --delete", false, No},
		{"git clean -n", "git clean --no-verify", false, No},
		{"git commit -nm x", "git commit --no-verify", false, Yes},
		{"git commit -mn", "git commit --no-verify", false, No},
		{"git commit --no-verify -m x", "git commit -m --no-verify", false, Yes},
		{"git branch -f x", "git branch --force", false, Yes},
		{"git branch -D x", "git branch -d", false, Yes},
		{"git branch -d x", "git branch -D", false, No},
		{"git branch -df x", "git branch -D", false, Yes},
		{"git branch --delete x -f", "git branch -D", false, Yes},
		{"git -C x log", "git -c", false, No},
		{"foo -D", "foo -d", false, Yes},
		{"cp -a x y", "cp -r", false, Yes},
		{"cp -r x y", "cp -a", false, No},
		{"gh api -XDELETE u", "gh api --method DELETE", false, Yes},
		{"sed --in-place=.bak s/a/b/ f", "sed -i", false, Yes},
		{"sed -nEi s/a/b/ f", "sed --in-place", false, Yes},
		{"sed -es/i/x/ f", "sed --in-place", false, No},
		{"rm -fr x", "rm -rf", false, Yes},
		{"rm x --force -R", "rm -rf", false, Yes},
		{"rm -r x", "rm -rf", false, No},
		{"rm --recursive x", "rm -r", false, Yes},
		{"rm -Rf x", "rm --recursive", false, Yes},
		{"curl -XPOST u", "curl -X POST", false, Yes},
		{"curl --request POST u", "curl -X POST", false, Yes},
		{"curl --request=POST u", "curl -XPOST", false, Yes},
		{"curl -sX POST u", "curl --request=POST", false, Yes},
		{"curl -X GET u -d POST", "curl -X POST", false, No},
		{"curl -XPOST u", "curl -O", false, No},
		{"curl -X GET u -X POST", "curl -X POST", false, Yes},
		{"curl -X $m u", "curl --request POST", false, Maybe},
		{"docker run --rm --volume=/:/x img", "docker run -v", false, Yes},
		{"docker run -itv /:/x img", "docker run --volume", false, Yes},
		{"docker run -uroot img", "docker run -t", false, No},
		{"docker run --net=host img", "docker run --network host", false, Yes},
		{"docker run --network host img", "docker run --net=host", false, Yes},
		{"docker run --network none img", "docker run --net=host", false, No},
		{"docker compose down --volumes", "docker compose down -v", false, Yes},
		{"kubectl delete pod x --namespace=prod", "kubectl delete -n prod", false, Yes},
		{"npm install --global x", "npm install -g", false, Yes},
		{"npm i -g x", "npm install --global", false, Yes},
		{"gh api -X DELETE u", "gh api --method DELETE", false, Yes},
		{"npm -g install x", "npm install --global", false, Yes},
		{"kubectl -n prod delete pod x", "kubectl delete --namespace prod", false, Yes},
		{"git -c a=b switch x", "git switch -c", false, No},
		{"git --no-pager push origin", "git push -*", false, No},
		{"git $x$'push'", "git push --force", false, Maybe},
		{`git commit -m "fix $x"`, "git commit --no-verify", false, No},
		{`git commit -m "$x"`, "git commit --no-verify", false, Maybe},
		{"git commit -m a$x", "git commit --no-verify", false, Maybe},
		{`git commit -m "--no-v$x"`, "git commit --no-verify", false, Maybe},
		{`curl -X "P$x" u`, "curl -X POST", false, Maybe},
		{"node --eval x", "node -e", false, Yes},
		{"apt-get --yes install x", "apt-get -y", false, Yes},
		{"foo -f", "foo --force", false, No},
		{"rm --recur x", "rm -r", false, Yes},
		{"rm --r x", "rm -r", false, Yes},
		{"rm -- x", "rm -v", false, No},
		{"rm -rrf x", "rm -rf", false, Yes},
		{"cat - x", "cat -", true, Yes},
		{"python -I -mpip install x", "python -m pip", false, Yes},
		{`git -C "$d" push origin`, "git push --force", false, No},
		{"git push --dele x", "git push -d", false, Yes},
		{"kubectl delete pod --all", "kubectl delete -A", false, No},
		{"kubectl delete -n=prod pod", "kubectl delete --namespace prod", false, Yes},
		{"foo -rf", "foo -fr", false, No},
		{"foo x -f y", "foo x y -f", false, Yes},
		{"git push origin", "git *", false, Yes},
		{"git --no-pager push origin", "git push *", true, Yes},
		{"cat docs/../x", "cat docs/*", false, Yes},
		{"cat docs/a..b/x", "cat docs/*", true, Yes},
		{"cat ../x", "cat *", true, Yes},
		{"eval git log", "eval", false, Yes},
		{"eval git log", "ev*", false, Yes},
		{"eval git log", "'eval' git log", false, Yes},
		{"x* log", "git log", false, Maybe},
		{"git push x push", "git push x", false, Yes},
		{"git push -f push", "git push -f", false, Yes},
		{"git $x push", "git push", false, Yes},
		{"git $x pull", "git push", false, Maybe},
		{"git {push,x}", "git push", false, Yes},
		{"git $x$'push'", "git push", false, Maybe},
		{`git "a\b"`, `git 'a\b'`, true, Yes},
		{`git $'a\x62c\x64'`, "git abcd", true, Yes},
		{`git $'\a'`, "git '\a'", true, Yes},
		{`git $'\x613'`, "git a3", true, Yes},
		{`git $'\x7'`, "git '\x07'", true, Yes},
		{`git $'\x6g'`, "git '\x06g'", true, Yes},
		{`git $'\303\251'`, "git \u00e9", true, Yes},
		{`git $'\xc3\xa9'`, "git \u00e9", true, Yes},
		{`git $'\u00e9'`, "git \u00e9", true, Yes},
		{`git $'\u0080'`, "git \u0080", true, Yes},
		{"--", "--", true, Yes},
		{"git log", " git log", true, Yes},
		{"git log", "", false, Yes},
		{"git log", "git;log", false, Yes},
		{"git log", "*", true, Yes},
		{"git log --output=F", "g?t log", false, Yes},
		{"git log", "A=b", false, Yes},
		{"git log", "A=b git log", false, Yes},
		{"git log", "{ git; }", false, Yes},
		{"git log", "git $x", false, Yes},
		{"bash x.sh", "bash x.sh", true, Yes},
		{"bash -e x.sh", "bash -e x.sh", false, Yes},
		{"git log", "git {log,x}", false, Yes},
		{"git log", "g?t log", true, Yes},
		{"/usr/bin/git log", "git log", false, Yes},
		{"GIT log", "git log", false, Yes},
		{"git log", "GIT log", false, Yes},
		{"git log", "Git log", false, Yes},
		{"zip a", "zip a", true, Yes},
		{"Zip a", "Zip a", true, Yes},
		{"ZIP a", "ZIP a", true, Yes},
		{"ZIP a", "zip", false, Yes},
		{"Awk a", "awk", false, Yes},
		{"AZ a", "AZ a", true, Yes},
		{"a a", "a a", true, Yes},
		{"z0_9-.x/y a", "z0_9-.x/y a", true, Yes},
		{"\u00e9t\u00e9 a", "\u00e9t\u00e9 a", true, Yes},
		{"\u00e9t\u00e9 a", "zip", false, No},
		{"zip a", "\u00e9t\u00e9", false, No},
		{"/ a", "zip", false, No},
		{"$x log", "git log", false, Maybe},
		{"gi* log", "git log", false, Yes},
		{"./git log", "git log", false, Yes},
		{"git push", "git push *", false, Yes},
		{"git push a/b", "git push **", false, Yes},
		{"git pull", "git push *", false, No},
		{"git", "git *", false, Yes},
		{"git", "* *", false, Yes},
		{"git push", "git push:*", false, Yes},
		{"git -C x push -f", "git push:*", false, Yes},
		{"git pull", "git push:*", false, No},
		{"npm run test:unit", "npm run test:*", true, Yes},
		{"npm run test", "npm run test:*", false, Yes},
		{"rm x", "rm:*", false, Yes},
		{"rmdir x", "rm:*", false, No},
		{`C:\\bin\\git log`, "git log", false, Yes},
		{"git send-pack x", "git push", false, Yes},
		{"git send-pack --force x", "git push -f", false, Yes},
		{"git send-pack x", "git push --force", false, No},
		{"git fetch-pack x", "git push", false, No},
	} {
		for i, c := range Read(Bash, tt.line, "").Commands {
			if i > 0 {
				continue
			}
			if got := c.Begins(tt.rule, false); got != tt.begins {
				t.Errorf("%q begins with %q: %t", tt.line, tt.rule, got)
			}
			if got := c.Names(tt.rule); got != tt.names {
				t.Errorf("%q names %q: %d, want %d", tt.line, tt.rule, got, tt.names)
			}
		}
	}
}

// What a line writes is named as in the line, or from where a cd went.
func TestWrittenFiles(t *testing.T) {
	for line, want := range map[string][]string{
		"ls":                                nil,
		"echo >a":                           {"a"},
		"echo >''":                          nil,
		"echo >a >>b":                       {"a", "b"},
		"sort -o /dev/null a":               nil,
		"sort --outp=b a":                   {"b"},
		"cp a b":                            {"b"},
		"mv a b":                            {"b", "a"},
		"git -C /x mv a b":                  {"/x/b", "/x/a"},
		"sort -o b --=c a":                  {"b"},
		"cd sub; echo >a":                   {"/w/sub/a"},
		"cd sub; echo >/tmp/a":              {"/tmp/a"},
		"cd sub; echo >~/a":                 {"~/a"},
		"cd /tmp; echo >a; cd x; sort -o b": {"/tmp/a", "/tmp/x/b"},
	} {
		if got := Read(Bash, line, "/w").Writes; !slices.Equal(got, want) {
			t.Errorf("%q writes %q, want %q", line, got, want)
		}
	}
}

func TestTrees(t *testing.T) {
	for line, want := range map[string][]string{
		"mv a b": {"a"}, "mv a b c": {"a", "b"}, "git mv a b": {"a"}, "cd x && mv a b": {"/w/x/a"},
		"rm -r a": {"a"}, "rm -rf a/ b": {"a", "b"}, "rm --recursive ''": nil,
		"git rm -r a b": {"a", "b"}, "git --no-pager rm a": {"a"}, "git -C x -C y rm a /b": {"x/y/a", "/b"}, "git checkout main -- a/": {"main", "a"},
		"git checkout .": nil, "git checkout -b x": nil, "git restore --staged a": {"a"}, "git clean -fdx": nil, "git clean -fd a": {"a"},
		"git -c a=b rm a": {"a"}, "git -C x rm ''": nil, "git -C x rm ~/a": {"~/a"}, "find -delete": nil,
		"find a b -type f -delete": {"a", "b"}, "find -L a -delete": {"a"}, "find . -delete": nil, "find a": nil, "find a . -name b -delete": {"a/b", "b"},
		"patch a <b": {"a"}, "patch -p1 <b": nil,
		"rm a": nil, "rmdir a": nil, "cp a b": nil, "ln a b": nil, "git add a": nil, "sed -i -r s/a/b/ a": nil, "truncate -r x a": nil,
	} {
		if got := Read(Bash, line, "/w").Trees; !slices.Equal(got, want) {
			t.Errorf("%q moves or removes %q, want %q", line, got, want)
		}
	}
}

// Names that are known only at run time, or that git expands, may be those that a rule denies.
func TestUnclearNames(t *testing.T) {
	for line, want := range map[string]bool{
		"git rm a": false, "git rm $x": true, "git rm a $x b": true, "git rm 'a*'": true, "git rm :/a": true, "git rm a; git rm b": false,
		"git -C x rm a": false, "git -C x rm $y": true, "git -C $x rm a": true, "git -C $x -C y rm a": true, "git -C y -C $x rm a": true,
		"git -C $x rm /a": false, "git -C $x -C /y rm a": false, "git -C " + strings.Repeat("x", maxFolder+1) + " rm a": true,
		"find a -delete": false, "find -L $x -delete": true, "find a -name b -delete": false, "find a -name $x -delete": true, "find $x -name b -delete": true, "find $x -delete": true,
		"find " + strings.Repeat("a ", 1100) + strings.Repeat("-name b ", 1000) + "-delete": true,
		"patch $x <a": true, "patch x <a": false,
	} {
		got := slices.ContainsFunc(Read(Bash, line, "/w").Commands, func(c Command) bool { return c.Unclear != "" })
		if got != want {
			t.Errorf("%.60q is unclear: %v, want %v", line, got, want)
		}
	}
}

// After a cd that may fail or not run, a part may write where the line was before.
func TestFilesWrittenIfCdFails(t *testing.T) {
	for line, want := range map[string][]string{
		"echo >a":                               nil,
		"cd sub && echo >a":                     nil,
		"cd sub && ls && echo >a":               nil,
		"cd sub && { ls; echo >a; }":            nil,
		"cd sub && for f in *; do cp x a; done": nil,
		"cd sub && (ls; echo >a)":               nil,
		"cd sub && cd deeper && echo >a":        nil,
		"cd sub; echo >/tmp/a":                  nil,
		"cd sub; echo >~/a":                     nil,
		"(cd sub); echo >a":                     nil,
		"x=$(cd sub; pwd); echo >a":             nil,
		"cd sub; echo >a":                       {"a"},
		"cd sub\necho >a":                       {"a"},
		"! cd sub && echo >a":                   {"a"},
		"cd sub || echo >a":                     {"a"},
		"cd sub & echo >a":                      {"a"},
		"cd sub | ls; echo >a":                  {"a"},
		"ls && cd sub; echo >a":                 {"a"},
		"if cd sub; then echo >a; fi":           {"a"},
		"sh -c 'cd sub'; echo >a":               {"a"},
		"cd sub && ls; echo >a":                 {"a"},
		"cd sub; cp x a":                        {"a", "a/x"},
		"cd sub; cd deeper; echo >a":            {"a", "/w/deeper/a", "/w/sub/a"},
		"cd sub; cd deeper && echo >a":          {"/w/deeper/a"},
		"cd /tmp; cd deeper; cd ..; echo >a":    {"a", "/a", "/tmp/deeper/a", "/w/a", "/w/deeper/a"},
	} {
		commands := Read(Bash, strings.ReplaceAll(line, "\\n", "\n"), "/w").Commands
		if got := commands[len(commands)-1].Fallbacks; !slices.Equal(got, want) {
			t.Errorf("%q writes elsewhere %q, want %q", line, got, want)
		}
	}
	for line, unclear := range map[string]bool{
		"cd -; echo >a": true, "pushd; echo >a": true, "pushd +1; echo >a": true, "cd a; popd; echo >a": true,
		"cd ~x; echo >a": true, "cd s*; echo >a": true, "cd ~; echo >a": false, "cd; echo >a": false,
		"pushd a; echo >a": false, "cd s*; cd /tmp; echo >a": false, strings.Repeat("cd a; ", 16) + "echo >a": false, strings.Repeat("cd a; ", 17) + "echo >a": true,
		strings.Repeat("cd a && ", 64) + "echo >a": false, strings.Repeat("cd a && ", 65) + "echo >a": true,
		"cd " + strings.Repeat("a/", 255) + " && echo >a": false, "cd " + strings.Repeat("a/", 256) + " && echo >a": true,
	} {
		commands := Read(Bash, line, "/w").Commands
		if got := commands[len(commands)-1].Unclear != ""; got != unclear {
			t.Errorf("%q: what it writes is not known: %t", line, got)
		}
	}
}

// A program that writes into a folder, if its last operand is one, names what it would write there.
func TestFilesWrittenInFolders(t *testing.T) {
	for line, want := range map[string][]Inside{
		"ls a b":                    nil,
		"mv a/f x":                  {{"x", "f"}},
		"cp a b/c x":                {{"x", "a"}, {"x", "c"}},
		"cp -f a x":                 {{"x", "a"}},
		"cp -t x a b":               {{"x", "a"}, {"x", "b"}},
		"cp --target-directory=x a": {{"x", "a"}},
		"ln -s /x/f":                {{".", "f"}},
		"cd sub; cp f g":            {{"/w/sub/g", "f"}},
		"cd sub; cp f /tmp":         {{"/tmp", "f"}},
		"cd sub; cp f ''; ls":       nil,
	} {
		if got := Read(Bash, line, "/w").Inside; !slices.Equal(got, want) {
			t.Errorf("%q writes %q, want %q", line, got, want)
		}
	}
}

// A script of sh is read in two grammars. Both readings are kept unless they agree in
// everything.
func TestReadingsOfSh(t *testing.T) {
	for line, want := range map[string]int{"ls -l; git log": 2, "chmod -R {x,y}": 2} {
		if got := Read(POSIX, line, "").Commands; len(got) != want {
			t.Errorf("%q: %d parts, want %d: %+v", line, len(got), want, got)
		}
	}
	c := Command{Text: "a", words: []word{{text: "a"}}}
	if !c.equal(c) {
		t.Error("a part differs from itself")
	}
	for name, o := range map[string]Command{
		"text": {Text: "b", words: c.words}, "words": {Text: "a"}, "doubt": {Text: "a", words: c.words, Doubt: "x"}, "exact": {Text: "a", words: c.words, Exact: "x"},
		"dynamic": {Text: "a", words: c.words, dynamic: true}, "unread": {Text: "a", words: c.words, Unread: true},
		"refused": {Text: "a", words: c.words, Refused: true}, "catastrophic": {Text: "a", words: c.words, Catastrophic: "x"},
	} {
		if c.equal(o) {
			t.Errorf("a part with another %s is the same", name)
		}
	}
}

// Programs that change files name them, and it is said if they do not certainly name all.
func TestChangedFiles(t *testing.T) {
	for line, want := range map[string]struct {
		writes  []string
		unclear bool
	}{
		"sed -i s/a/b/ f g":              {[]string{"f", "g"}, false},
		"sed -i s/a/b/":                  {[]string{"s/a/b"}, false},
		"sed -i -e s/a/b/ f":             {[]string{"s/a/b", "f"}, false},
		"sed s/a/b/ f":                   {nil, false},
		"install a -t d":                 {[]string{"a", "d", "d"}, false},
		"install a -t":                   {[]string{"a"}, false},
		"install --target-directory=$d":  {nil, true},
		"install -m x a b":               {[]string{"x", "a", "b"}, false},
		"install --target-directory=d a": {[]string{"a", "d"}, false},
		"dd if=a":                        {nil, false},
		`dd "if=$x" of=b`:                {[]string{"b"}, false},
		"dd $x":                          {nil, true},
		"rm a/ b":                        {[]string{"a", "b"}, false},
		"rm":                             {nil, true},
		"rm ~/a":                         {[]string{"~/a"}, true},
		"rm $x":                          {nil, true},
		"rm {a,b}":                       {[]string{"a", "b"}, false},
		"cd $x; rm a":                    {[]string{"a"}, true},
		"cd $x; rm /a":                   {[]string{"/a"}, false},
		"cd sub; rm a":                   {[]string{"/w/sub/a"}, false},
		"echo >$x":                       {nil, true},
		"cd $x; echo >a":                 {[]string{"a"}, true},
		"cd $x; echo >/a":                {[]string{"/a"}, false},
	} {
		got := Read(Bash, line, "/w")
		unclear := slices.ContainsFunc(got.Commands, func(c Command) bool { return c.Unclear != "" })
		if !slices.Equal(got.Writes, want.writes) || unclear != want.unclear {
			t.Errorf("%q writes %q, unclear: %t; want %q, %t", line, got.Writes, unclear, want.writes, want.unclear)
		}
	}
}

// What find runs for several files has one more, and a wrapper passes only if a command certainly follows.
func TestCommandsBehindOthers(t *testing.T) {
	for line, words := range map[string]int{"find . -exec ls {} \\;": 2, "find . -exec ls {} +": 3} {
		commands := Read(Bash, line, "").Commands
		if n := len(commands[len(commands)-1].words); n != words {
			t.Errorf("%q: %d words", line, n)
		}
	}
	for line, passes := range map[string]bool{"timeout 5 ls": true, "timeout 5": false, "timeout 5 a$x": false, "timeout 5 -x": false, "timeout 5 ''": false, "export": false, "export X=1": false, "export CI=1": true} {
		if c := Read(Bash, line, "").Commands[0]; c.Passes != passes {
			t.Errorf("%q passes: %t", line, c.Passes)
		}
	}
}
