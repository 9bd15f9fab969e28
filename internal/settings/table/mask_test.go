package table

import "testing"

func TestMask(t *testing.T) {
	tests := []struct{ in, want string }{
		{"plain text", "plain text"},
		{"https://user:pw@h/x?a=1&token=abc&b=2#f", "https://***@h/x?a=1&token=***&b=2#f"},
		{"https://h/?api_key=abc&key=$KEY&sig=${SIG}", "https://h/?api_key=***&key=$KEY&sig=${SIG}"},
		{"https://h:1/a@b?x=y", "https://h:1/a@b?x=y"},
		{"use ghp_0123456789abcdef and sk-0123456789abcdef", "use *** and ***"},
		{"sk-short", "sk-short"},
		{"skeleton-key-for-everything", "skeleton-key-for-everything"},
	}
	for _, test := range tests {
		if got := Mask(test.in); got != test.want {
			t.Errorf("Mask(%q) = %q, want %q", test.in, got, test.want)
		}
	}
}
