package registry

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/md5"
	"crypto/rc4"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// needsPassword reports whether a PDF file can only be opened with a password (ISO 32000-2, 7.6.4). Many
// files are encrypted with the empty password, which only restricts what may be done with them. If the
// encryption is not understood, the result is false.
func needsPassword(data []byte) bool {
	rest, found := data, false
	for end := len(data); !found; {
		at := bytes.LastIndex(data[:end], []byte("/Encrypt"))
		if at < 0 {
			return false
		}
		rest, end = data[at+len("/Encrypt"):], at
		found = len(rest) > 0 && !isLetter(rest[0]) // not /EncryptMetadata
	}
	var number, generation int
	if n, _ := fmt.Sscanf(string(rest[:min(len(rest), 40)]), "%d %d R", &number, &generation); n == 2 {
		_, object, ok := bytes.Cut(data, fmt.Appendf(nil, "\n%d %d obj", number, generation))
		if !ok {
			_, object, ok = bytes.Cut(data, fmt.Appendf(nil, "\r%d %d obj", number, generation))
		}
		if !ok {
			return false
		}
		rest, _, _ = bytes.Cut(object, []byte("endobj"))
	}
	d := pdfDictionary(rest[:min(len(rest), 64<<10)])
	revision, owner, user := d.number("/R"), d.text("/O"), d.text("/U")
	var id []byte
	if at := bytes.LastIndex(data, []byte("/ID")); at >= 0 {
		id = pdfString(bytes.TrimLeft(data[at+len("/ID"):], " \t\r\n["))
	}
	switch {
	case revision < 2 || len(owner) < 32 || len(user) < 32:
		return false
	case revision >= 5:
		return len(user) >= 48 && !bytes.Equal(hardened(user[32:40], revision), user[:32])
	}
	padded := []byte(noPassword)
	key := md5.New()
	key.Write(padded)
	key.Write(owner[:32])
	_ = binary.Write(key, binary.LittleEndian, int32(d.number("/P")))
	key.Write(id)
	if revision == 4 && bytes.Contains(d, []byte("/EncryptMetadata false")) {
		key.Write([]byte{0xff, 0xff, 0xff, 0xff})
	}
	sum, length := key.Sum(nil), 5
	if revision == 4 {
		length = 16
	} else if bits := d.number("/Length"); revision == 3 && bits >= 40 && bits <= 128 {
		length = bits / 8
	}
	if revision == 2 {
		return !bytes.Equal(ciphered(sum[:length], 0, padded), user[:32])
	}
	for range 50 {
		next := md5.Sum(sum[:length])
		sum = next[:]
	}
	check := md5.Sum(append(padded, id...))
	out := check[:]
	for i := range 20 {
		out = ciphered(sum[:length], byte(i), out)
	}
	return !bytes.Equal(out, user[:16])
}

// noPassword is the empty password, padded.
const noPassword = "\x28\xBF\x4E\x5E\x4E\x75\x8A\x41\x64\x00\x4E\x56\xFF\xFA\x01\x08" +
	"\x2E\x2E\x00\xB6\xD0\x68\x3E\x80\x2F\x0C\xA9\xFE\x64\x53\x69\x7A"

// ciphered encrypts text by RC4, with each byte of the key changed by mask.
func ciphered(key []byte, mask byte, text []byte) []byte {
	masked, out := bytes.Clone(key), make([]byte, len(text))
	for i := range masked {
		masked[i] ^= mask
	}
	if c, err := rc4.NewCipher(masked); err == nil {
		c.XORKeyStream(out, text)
	}
	return out
}

// hardened returns the hash of the empty password and a salt, by algorithm 2.B from revision 6 on.
func hardened(salt []byte, revision int) []byte {
	first := sha256.Sum256(salt)
	sum := first[:]
	for round, last := 1, byte(0); revision > 5 && (round <= 64 || int(last) > round-1-32); round++ {
		block, err := aes.NewCipher(sum[:16])
		if err != nil {
			return nil
		}
		text := bytes.Repeat(sum, 64)
		cipher.NewCBCEncrypter(block, sum[16:32]).CryptBlocks(text, text)
		last = text[len(text)-1]
		rest := 0
		for _, c := range text[:16] {
			rest += int(c)
		}
		switch rest % 3 {
		case 0:
			next := sha256.Sum256(text)
			sum = next[:]
		case 1:
			next := sha512.Sum384(text)
			sum = next[:]
		default:
			next := sha512.Sum512(text)
			sum = next[:]
		}
	}
	return sum[:32]
}

// pdfDictionary is the text of a dictionary.
type pdfDictionary []byte

// value returns what follows a key of the dictionary itself or of one in it.
func (d pdfDictionary) value(key string) []byte {
	for rest := []byte(d); ; {
		_, after, ok := bytes.Cut(rest, []byte(key))
		if !ok {
			return nil
		}
		if rest = after; len(rest) > 0 && !isLetter(rest[0]) {
			return bytes.TrimLeft(rest, " \t\r\n")
		}
	}
}

func (d pdfDictionary) number(key string) int {
	text := d.value(key)
	end := bytes.IndexFunc(text, func(r rune) bool { return r != '-' && (r < '0' || r > '9') })
	n, _ := strconv.ParseInt(string(text[:max(end, 0)]), 10, 64)
	return int(n)
}

func (d pdfDictionary) text(key string) []byte { return pdfString(d.value(key)) }

// pdfString reads a string at the beginning of text; nil if there is none.
func pdfString(text []byte) []byte {
	text = text[:min(len(text), 4096)]
	if inner, ok := bytes.CutPrefix(text, []byte("<")); ok {
		digits, _, _ := bytes.Cut(inner, []byte(">"))
		out, _ := hex.DecodeString(strings.Join(strings.Fields(string(digits)), ""))
		return out
	}
	var out []byte
	for i, depth := 0, 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '(':
			if depth++; depth == 1 {
				continue
			}
		case depth == 0:
			return nil
		case c == ')':
			if depth--; depth == 0 {
				return out
			}
		case c == '\\' && i+1 < len(text):
			i++
			if n := octal(text[i:min(i+3, len(text))]); n > 0 {
				value, _ := strconv.ParseUint(string(text[i:i+n]), 8, 16)
				c, i = byte(value), i+n-1
			} else if at := strings.IndexByte("nrtbf", text[i]); at >= 0 {
				c = "\n\r\t\b\f"[at]
			} else if c = text[i]; c == '\n' {
				continue
			}
		}
		out = append(out, c)
	}
	return nil
}

// octal returns how many digits of an octal number text begins with.
func octal(text []byte) (n int) {
	for n < len(text) && '0' <= text[n] && text[n] <= '7' {
		n++
	}
	return n
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
