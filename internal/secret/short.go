package secret

import (
	"path"
	"strings"

	"github.com/toolreg/toolreg/internal/expand"
)

// passwordOption returns the short option with which a program takes a password, or ""
// if there is none. apart reports whether the password may also be the next word;
// after mysql -p the next word is a database.
func passwordOption(program string) (option string, apart bool) {
	switch program {
	case "mysql", "mysqldump", "mysqladmin", "mysqlimport", "mysqlshow", "mysqlcheck", "mysqlpump", "mysqlslap",
		"mariadb", "mariadb-dump", "mariadb-admin", "mariadb-import",
		"mariadb-show", "mariadb-check", "7z", "7za", "7zz":
		return "-p", false
	case "sshpass", "mongo", "mongosh", "mongodump", "mongorestore":
		return "-p", true
	case "redis-cli":
		return "-a", true
	}
	return "", false
}

// maskShort masks passwords in short options of programs that are known to accept
// them, as in "mysql -pSECRET". For other programs -p is a port, a path or a project.
func maskShort(text string) string {
	if !strings.Contains(text, "-p") && !strings.Contains(text, "-a") {
		return text
	}
	var b strings.Builder
	option, apart := "", false // those of the last program
	for rest := text; rest != ""; {
		end := strings.IndexAny(rest, " \t\r\n;|&()`")
		if end < 0 {
			end = len(rest)
		}
		word := rest[:end]
		value, short := strings.CutPrefix(word, option)
		if o, a := passwordOption(path.Base(strings.Trim(word, `"'\`))); o != "" {
			option, apart = o, a
		} else if short && option != "" && (value != "" || apart) && !isPort(value) {
			b.WriteString(option)
			rest = maskPlain(&b, rest[len(option):])
			option = "" // the option occurs once: in sshpass -p x ssh -p 22 the second one is a port
			continue
		}
		b.WriteString(word)
		if end < len(rest) {
			b.WriteByte(rest[end])
			if strings.IndexByte("\n;|&()`", rest[end]) >= 0 {
				option = ""
			}
			end++
		}
		rest = rest[end:]
	}
	return b.String()
}

// maskPlain is maskNext for a word of a command line. It keeps a variable, and an
// option after another one.
func maskPlain(b *strings.Builder, rest string) string {
	word := strings.TrimLeft(rest, " \t")
	if end := strings.IndexAny(word, " \t\r\n;|&)"); end >= 0 {
		word = word[:end]
	}
	apart := strings.HasPrefix(rest, " ") || strings.HasPrefix(rest, "\t")
	if expand.IsVariable(strings.Trim(word, `"`)) || apart && strings.HasPrefix(word, "-") {
		return rest
	}
	return maskNext(b, rest, " \t\r\n\"'`;|&)")
}

// isPort reports whether a value is a port mapping, as in docker run --name mysql
// -p3306:3306.
func isPort(value string) bool {
	return strings.Contains(value, ":") && strings.Trim(value, "0123456789.:") == ""
}
