//go:build amd64 || arm64

package sandbox

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Where a sandbox can be set up, nothing is said to be missing.
func TestProbeFindsWhatWorks(t *testing.T) {
	if err := trySandbox(); err != nil {
		t.Skip(err)
	}
	for _, s := range []Support{probe(), Probe()} {
		if !s.Full() || s.Parts[0].Name != "user namespaces" || len(s.Parts) != 8 {
			t.Errorf("%+v", s)
		}
	}
	if !canMount() || canClone(unix.CLONE_NEWUSER|unix.CLONE_NEWNET) != nil || canClone(unix.CLONE_NEWUSER|unix.CLONE_THREAD) == nil {
		t.Error("what works is said not to, or the reverse")
	}
}

func TestVersionsOfLandlock(t *testing.T) {
	for abi, want := range map[int]Part{
		0: {Name: "Landlock", Detail: "not enabled in this kernel"},
		5: {Name: "Landlock", Detail: "version 5; 6 is needed, from Linux 6.12"},
		6: {Name: "Landlock", OK: true, Detail: "version 6"},
		7: {Name: "Landlock", OK: true, Detail: "version 7"},
	} {
		if got := landlockPart(abi); got != want {
			t.Errorf("version %d: %+v", abi, got)
		}
	}
}

func TestWhyThereAreNoUserNamespaces(t *testing.T) {
	for err, want := range map[unix.Errno]string{
		unix.ENOSPC: "the limit user.max_user_namespaces is reached",
		unix.EPERM:  "the system forbids them; see kernel.unprivileged_userns_clone and kernel.apparmor_restrict_unprivileged_userns",
		unix.EINVAL: "invalid argument",
	} {
		if got := whyNone(err); got != want {
			t.Errorf("%v: %q", err, got)
		}
	}
}

// A container that hides a part of /proc keeps its programs from mounting another one.
func TestCoveredProc(t *testing.T) {
	const root, proc = "22 1 8:1 / / rw - ext4 /dev/sda rw\n", "23 22 0:21 / /proc rw - proc proc rw\n"
	for mounts, want := range map[string]bool{
		root + proc: false,
		root + proc + "24 23 0:22 / /proc/sys/fs/binfmt_misc rw - binfmt_misc binfmt_misc rw\n": false,
		root + "25 22 0:23 / /process/x rw - tmpfs tmpfs rw\n":                                  false,
		root + proc + "24 23 0:22 / /proc/kcore rw - tmpfs tmpfs rw\n":                          true,
		root + "26 22 8:1 /":   true, // in doubt
		root + "26 22 8:1 / /": false,
	} {
		if got := coversProc(mounts); got != want {
			t.Errorf("%q hides a part: %v", mounts, got)
		}
	}
}
