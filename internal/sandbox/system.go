package sandbox

import "runtime"

// systemPaths returns the paths that system programs need and that do not contain
// personal data. For the system's settings these are single files, because password
// hashes and keys are in the same folders.
func systemPaths() []string {
	if runtime.GOOS == "darwin" {
		return []string{"/System", "/Library", "/usr", "/bin", "/sbin", "/opt", "/Applications/Xcode.app", "/private/etc",
			"/private/var/db/timezone", "/private/var/select", "/dev"}
	}
	return []string{
		"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store", "/home/linuxbrew",
		"/sys/devices/system/cpu", "/sys/devices/system/node",

		"/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/hosts", "/etc/host.conf", "/etc/hostname", "/etc/resolv.conf",
		"/etc/gai.conf", "/etc/networks", "/etc/protocols", "/etc/services", "/etc/rpc", "/etc/ethertypes",
		"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload", "/etc/alternatives",
		"/etc/localtime", "/etc/timezone", "/etc/locale.conf", "/etc/locale.alias", "/etc/locale.gen", "/etc/default/locale",
		"/etc/os-release", "/etc/lsb-release", "/etc/debian_version", "/etc/redhat-release", "/etc/fedora-release",
		"/etc/alpine-release", "/etc/arch-release", "/etc/SuSE-release", "/etc/system-release",
		"/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/ssl/openssl.cnf", "/etc/ca-certificates", "/etc/ca-certificates.conf",
		"/etc/pki/ca-trust", "/etc/pki/tls/certs", "/etc/pki/tls/cert.pem", "/etc/pki/tls/openssl.cnf", "/etc/crypto-policies",
		"/etc/profile", "/etc/profile.d", "/etc/bash.bashrc", "/etc/bashrc", "/etc/bash_completion.d", "/etc/inputrc",
		"/etc/environment", "/etc/shells", "/etc/zsh", "/etc/zshrc", "/etc/zshenv", "/etc/fish", "/etc/skel", "/etc/login.defs",
		"/etc/gitconfig", "/etc/gitattributes", "/etc/terminfo", "/etc/mime.types", "/etc/magic", "/etc/mailcap",
		"/etc/papersize", "/etc/xdg", "/etc/fonts", "/etc/X11/fonts", "/etc/ImageMagick-6", "/etc/ImageMagick-7",
		"/etc/python3", "/etc/perl", "/etc/java", "/etc/maven", "/etc/gradle", "/etc/nodejs", "/etc/php", "/etc/ghc",
		"/etc/java-11-openjdk", "/etc/java-17-openjdk", "/etc/java-21-openjdk", "/etc/java-25-openjdk",
		"/etc/emacs", "/etc/vim", "/etc/nanorc", "/etc/manpath.config", "/etc/groff", "/etc/lynx", "/etc/wgetrc",
		"/etc/dpkg", "/etc/gdb", "/etc/chromium", "/etc/chromium.d", "/etc/pip.conf", "/etc/npmrc",
	}
}
