package script_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/toolreg/toolreg/internal/script"
)

// FuzzScript runs scripts that are made of fragments. However a script ends, it ends soon, with
// a place, and the engine reports it instead of failing.
func FuzzScript(f *testing.F) {
	fragments := []string{
		"x = 1\n", "x = [x, x]\n", "x = x * 9\n", "x = x + x\n", "for i in range(9):\n  x = [x]\n", "result = x\n", "x = str(x)\n", "x = {'a': x}\n",
		"x = tools.echo(a = x)\n", "x = call('echo', {'a': x})\n", "def f(y):\n  return tools.echo(y = y)\n", "x = parallel(f, [x, 1])\n", "x = json.encode(x)\n",
		"x = json.decode(x, None)\n", "print(x)\n", "x = list(x)\n", "x = x[0]\n", "def main(p):\n  return p\n", "x = sorted([x, x])\n", "x = tools.picture()\n", "if x:\n  x = -x\n",
		"x = set([1])\n", "x = b'a' * 3\n", "x = 'é'[0]\n", "x = (x,)\n", "fail(x)\n", "x = x ** 2\n", "x = dict(a = x)\n", "x.append(x)\n", "x = describe('echo')\n", "x = 1 << 500\n", "x = x * x\n",
	}
	f.Add([]byte{0, 1, 1, 5})
	f.Add([]byte{0, 8, 5, 10, 11, 5})
	f.Add([]byte{19, 5, 12, 27, 28})
	f.Fuzz(func(t *testing.T, picks []byte) {
		var b strings.Builder
		for _, p := range picks[:min(len(picks), 40)] {
			b.WriteString(fragments[int(p)%len(fragments)])
		}
		s := newScript(t, &host{}, b.String())
		s.Limits = script.Limits{Steps: 100_000, Calls: 20, Memory: 32 << 20, Output: 1000, Result: 100_000, Timeout: 5 * time.Second}
		_, err := script.Run(t.Context(), s)
		if failure, ok := errors.AsType[*script.Failure](err); err != nil && !ok || ok && !strings.HasPrefix(failure.At, "x.star") {
			t.Errorf("%v of\n%s", err, b.String())
		}
	})
}
