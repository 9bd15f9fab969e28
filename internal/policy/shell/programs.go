package shell

import (
	"strings"
)

// programOf returns the description of a program. ok is false for other programs,
// whose arguments are not searched for commands.
func programOf(name string) (p program, ok bool) {
	if p, ok := wrapperOf(name); ok {
		return p, true
	}
	if p, ok := optionsOf(name); ok {
		return p, true
	}
	if rest, ok := strings.CutPrefix(name, "g"); ok { // the GNU version, on systems that have another version
		if p, ok := wrapperOf(rest); ok {
			return p, true
		}
		return optionsOf(rest)
	}
	return program{}, false
}

// wrapperOf returns the description of a program that runs the command in its
// arguments.
func wrapperOf(name string) (program, bool) {
	p := program{}
	switch name {
	case "env":
		p = program{valued: "-u --unset -C --chdir -a --argv0", flags: "-i - -0 --null --ignore-environment -v --debug --list-signal-handling",
			attached: "--block-signal --default-signal --ignore-signal", splits: "-S --split-string", assigns: true}
	case "xargs":
		p = program{valued: "-I -n -P -L -d -a -E -s --max-args --max-procs --max-chars --delimiter --arg-file --process-slot-var",
			flags: "-0 --null -r --no-run-if-empty -t --verbose -p --interactive -x --exit -o --open-tty --show-limits", attached: "-i -l -e --replace --max-lines --eof", extra: true}
	case "sudo":
		p = program{valued: "-u -g -h -p -C -T -r -t -U -D -R --user --group --host --prompt --chdir", flags: "-n -E -H -S -k -b -A -i -s -P", assigns: true, shell: true}
	case "doas":
		p = program{valued: "-u -C", flags: "-n -s", shell: true}
	case "timeout":
		p = program{valued: "-s -k --signal --kill-after", flags: "-f -p --foreground --preserve-status -v --verbose", skip: 1}
	case "nice":
		p = program{valued: "-n --adjustment", flags: "-0 -1 -2 -3 -4 -5 -6 -7 -8 -9"}
	case "ionice":
		p = program{valued: "-c -n -p -P -u --class --classdata --pid --pgid --uid", flags: "-t --ignore"}
	case "stdbuf":
		p = program{valued: "-i -o -e --input --output --error"}
	case "time":
		p = program{valued: "-f --format", writes: "-o --output", flags: "-p -a -v -l -q --portability --append --verbose --quiet", assigns: true}
	case "setarch":
		p = program{flags: archFlags, vague: true, shell: true}
	case "linux32", "linux64", "i386", "i686", "x86_64", "uname26", "arch":
		p = program{flags: archFlags, shell: true}
	case "setpriv":
		p = program{valued: "--ruid --euid --rgid --egid --reuid --regid --groups --inh-caps --ambient-caps --bounding-set --securebits --pdeathsig --selinux-label --apparmor-profile --ptracer",
			flags: "-d --dump --nnp --no-new-privs --clear-groups --keep-groups --init-groups --list-caps --reset-env"}
	case "prlimit":
		p = program{valued: "-p -o --pid --output", flags: "--noheadings --raw --verbose",
			attached: "-c -d -e -f -i -l -m -n -q -r -s -t -u -v -x -y --core --data --nice --fsize --sigpending --memlock --rss --nofile --msgqueue --rtprio --stack --cpu --nproc --as --locks --rttime"}
	case "choom":
		p = program{valued: "-n -p --adjust --pid"}
	case "chrt":
		p = program{valued: "-T -P -D --sched-runtime --sched-period --sched-deadline", flags: "-a -b -d -f -i -o -r -R -v --batch --deadline --fifo --idle --other --rr --reset-on-fork", skip: 1}
	case "taskset":
		p = program{flags: "-a -c --all-tasks --cpu-list", skip: 1}
	case "chroot":
		p = program{valued: "--groups --userspec", flags: "--skip-chdir", skip: 1, shell: true}
	case "gosu", "su-exec", "setuidgid", "s6-setuidgid", "setlock", "faketime":
		p = program{skip: 1}
	case "exec":
		p = program{flags: "-a -c -l", vague: true} // vague because ash runs the name after -a
	case "command":
		p = program{flags: "-p", silent: "-v -V"}
	case "jobs":
		p = program{flags: "-l -n -p -r -s -x", vague: true}
	case "ssh-agent":
		p = program{valued: "-a -E -O -P -t", flags: "-c -D -d -k -s"}
	case "strace", "ltrace":
		p = program{valued: "-e -p -s -u -E -a -b -I -O -S -X -P", writes: "-o --output", flags: "-f -c -t -q -v -y -T -r -i -k -x"}
	case "script":
		p = program{valued: "-B -E -I -m -O -o -T", scripts: "-c --command", attached: "-t --timing", flags: "-a -e -f -q --append --flush --force --quiet --return", vague: true, shell: true}
	case "flock":
		p = program{valued: "-w -E --timeout --wait --conflict-exit-code", scripts: "-c --command",
			flags: "-e -F -n -o -s -u -x --exclusive --shared --unlock --nonblock --nb --close --no-fork --verbose", vague: true}
	case "su", "runuser", "sg", "newgrp":
		p = program{valued: "-u -g -G -s -w -T --user --group --supp-group --shell --whitelist-environment", scripts: "-c --command --session-command",
			flags: "- -l -m -p -f -P --login --preserve-environment --fast --pty", vague: true, shell: true}
	case "watch", "hyperfine", "entr", "watchexec", "nodemon":
		p = program{valued: "-n --interval -j --jobs", vague: true}
	case "unshare", "nsenter", "run0", "pkexec", "firejail", "bwrap", "fakeroot", "fakechroot", "parallel":
		p = program{vague: true, shell: true}
	case "at", "batch": // the operands are a time
		p = program{skip: 99, vague: true, shell: true}
	case "nohup", "setsid", "builtin", "busybox", "toybox", "systemd-run", "systemd-inhibit", "systemd-cat",
		"caffeinate", "unbuffer", "rlwrap", "chronic", "ccache", "sccache", "torsocks", "tsocks", "proxychains", "proxychains4", "xvfb-run", "dbus-run-session", "dbus-launch",
		"start-stop-daemon", "daemonize", "catchsegv", "valgrind", "numactl", "cpulimit", "chpst", "softlimit", "nocache",
		"sshpass", "tini", "dumb-init", "trickle", "noglob", "nocorrect", "eatmydata", "wine":
	case "runcon", "capsh", "logsave", "lockf", "perf", "direnv", "cgexec", "expect":
		p.vague = true
	default:
		return p, false
	}
	p.wraps = true
	return p, true
}

const archFlags = "-B -F -I -L -R -S -T -X -Z -3 -v --32bit --fdpic-funcptrs --short-inode --addr-compat-layout --addr-no-randomize --whole-seconds --sticky-timeouts --read-implies-exec --mmap-page-zero --3gb --4gb --uname-2.6 --verbose"

// optionsOf returns the description of a program that runs other programs or
// writes files only with certain options.
func optionsOf(name string) (program, bool) {
	switch name {
	case "ag":
		return program{valued: "-A -B -C -G -g -m -p", runs: "--pager"}, true
	case "bat":
		return program{runs: "--pager"}, true
	case "curl":
		return program{valued: "-A -b -C -d -e -E -F -H -m -P -Q -r -t -T -u -U -w -x -X -y -Y -z --request --data --header --write-out --max-time --retry --user",
			runs: "-K --config", acts: "-O --remote-name --remote-name-all --remote-header-name",
			writes: "-o --output -c --cookie-jar -D --dump-header --trace --trace-ascii --stderr --etag-save --libcurl --hsts --alt-svc --ssl-sessions"}, true
	case "diff3", "sdiff":
		return program{valued: "-F -I -L -w --label --width", runs: "--diff-program", writes: "-o --output"}, true
	case "dot", "tree":
		return program{valued: "-K -T -G -N -E -l -n -s -L -P -I -H", acts: "-O -R", writes: "-o"}, true
	case "file":
		return program{valued: "-e -F -f -m -P", acts: "-C --compile"}, true
	case "go":
		return program{whole: true, runs: "-exec -toolexec -vettool",
			outputs: "-o -coverprofile -cpuprofile -memprofile -blockprofile -mutexprofile -trace -outputdir"}, true
	case "iconv":
		return program{valued: "-f -t", writes: "-o --output"}, true
	case "make":
		return program{valued: "-C -I -l -W -o", attached: "-j -O", runs: "--eval -E -f --file --makefile"}, true
	case "man":
		return program{valued: "-C -L -m -M -S -s -e -R -r -E -p", runs: "-P --pager -H --html"}, true
	case "openssl":
		return program{whole: true, runs: "-engine -provider -provider-path -config -pre -post", writes: "-out -keyout -writerand"}, true
	case "pandoc":
		return program{runs: "-F --filter -L --lua-filter --pdf-engine --extract-media", writes: "-o --output"}, true
	case "pytest", "py.test":
		return program{valued: "-c -k -m -n -o -p -r -W", writes: "--basetemp", outputs: "--junitxml --junit-xml --log-file"}, true
	case "rg":
		return program{valued: "-A -B -C -E -M -T -d -e -f -g -j -m -r -t --glob --type --regexp", runs: "--pre --hostname-bin"}, true
	case "rsync":
		return program{valued: "-B -f -T", runs: "-e --rsh --rsync-path -M --remote-option", writes: "--log-file --write-batch --only-write-batch"}, true
	case "scp", "sftp":
		return program{valued: "-B -b -c -i -J -l -P -R -X", runs: "-o -S -F -D -s"}, true
	case "sed":
		return program{valued: "-e -f -l --expression --file --line-length", acts: "-i --in-place"}, true
	case "shuf":
		return program{valued: "-i -n", writes: "-o --output"}, true
	case "sort":
		return program{valued: "-k -t -S -T --key --field-separator --buffer-size --temporary-directory --parallel --batch-size --sort --files0-from",
			runs: "--compress-program", writes: "-o --output"}, true
	case "split":
		return program{valued: "-a -b -C -l -n -t", runs: "--filter"}, true
	case "ssh":
		return program{valued: "-B -b -c -D -e -i -J -L -l -m -O -p -Q -R -W -w", runs: "-o -F -I -S", writes: "-E"}, true
	case "tar", "bsdtar":
		return program{valued: "-b -C -f -g -H -K -L -N -V -X --file --directory --exclude --exclude-from --transform --label --owner --group --mode",
			runs:   "-I -F -T --files-from --to-command --use-compress-program --checkpoint-action --info-script --new-volume-script --rsh-command --rmt-command",
			writes: "--index-file --volno-file"}, true
	case "tcpdump":
		return program{valued: "-B -c -C -E -F -G -i -j -M -Q -r -s -T -V -W -y", runs: "-z", writes: "-w"}, true
	case "uniq":
		return program{valued: "-f -s -w --skip-fields --skip-chars --check-chars", operands: 1}, true
	case "xxd":
		return program{valued: "-c -g -l -n -o -R -s", operands: 1}, true
	case "wget":
		return program{valued: "-t -T -w -Q -P -U -A -R -D -I -X -l -B -i", runs: "-e --execute --use-askpass --config", writes: "-O --output-document -o --output-file -a --append-output"}, true
	case "yq":
		return program{acts: "-i --inplace --in-place -s --split-exp"}, true
	case "zip":
		return program{valued: "-b -n -t -O", runs: "-TT --unzip-command"}, true
	}
	return packagesOf(name)
}

// packagesOf returns the description of a package manager.
func packagesOf(name string) (program, bool) {
	switch name {
	case "apt", "apt-get", "apt-cache", "aptitude":
		return program{valued: "-t --target-release", runs: "-o --option -c --config-file"}, true
	case "cargo":
		return program{runs: "--config"}, true
	case "dpkg":
		return program{runs: "--pre-invoke --post-invoke"}, true
	case "helm", "kubectl", "oc":
		return program{valued: "-n -o -l -f -c -s", runs: "--kubeconfig --post-renderer --registry-config", writes: "--cache-dir --profile-output"}, true
	case "npm", "pnpm":
		return program{runs: "-c -C " + npmOptions}, true
	case "npx":
		return program{valued: "-p --package -w --workspace", runs: "-c --call --node-options --script-shell"}, true
	case "pip", "pip3":
		return program{runs: "--python", writes: "--log --log-file --report"}, true
	case "rpm", "rpmquery", "rpmverify":
		return program{valued: "-f -g -p -r", runs: "-D -E --define --eval --load --macros --pipe --rcfile"}, true
	case "yarn":
		return program{runs: npmOptions}, true
	}
	return program{}, false
}

const npmOptions = "--script-shell --node-options --git --shell --call --prefix --cwd --dir --userconfig --globalconfig --browser --editor --viewer"
