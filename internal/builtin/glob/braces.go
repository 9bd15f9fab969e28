package glob

import "fmt"

// maxAlternatives limits the number of patterns to which the braces of one
// pattern may expand.
const maxAlternatives = 1024

// expandBraces returns the patterns to which a pattern with {a,b} expands, or
// the pattern itself if it has no braces. Braces may be nested. Without a comma
// or a closing brace they are literal.
func expandBraces(pattern string) ([]string, error) {
	out := []string{""}
	for pattern != "" {
		open, end, choices := firstBraces(pattern)
		if choices == nil {
			out = join(out, []string{pattern})
			break
		}
		var middle []string
		for _, c := range choices {
			alternatives, err := expandBraces(c)
			if err != nil {
				return nil, err
			}
			middle = append(middle, alternatives...)
		}
		if len(out)*len(middle) > maxAlternatives {
			return nil, fmt.Errorf("braces expand to more than %d patterns; use fewer", maxAlternatives)
		}
		out = join(join(out, []string{pattern[:open]}), middle)
		pattern = pattern[end:]
	}
	return out, nil
}

func join(heads, tails []string) []string {
	out := make([]string, 0, len(heads)*len(tails))
	for _, h := range heads {
		for _, t := range tails {
			out = append(out, h+t)
		}
	}
	return out
}

// firstBraces finds the first complete {a,b}. It returns where it starts and
// ends, and its choices, which are nil if there are no braces.
func firstBraces(s string) (open, end int, choices []string) {
	depth, from := 0, 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '{':
			if depth++; depth == 1 {
				open, from, choices = i, i+1, nil
			}
		case ',':
			if depth == 1 {
				choices = append(choices, s[from:i])
				from = i + 1
			}
		case '}':
			if depth == 0 {
				continue
			}
			if depth--; depth == 0 && choices != nil {
				return open, i + 1, append(choices, s[from:i])
			}
		}
	}
	return 0, 0, nil
}
