package declare

import "bytes"

// Tokens estimates how many tokens a model reads data as: a quarter of its
// ASCII bytes, and one for each other character.
func Tokens(data []byte) int {
	ascii, other := 0, 0
	for _, r := range bytes.Runes(data) {
		if r < 0x80 {
			ascii++
		} else {
			other++
		}
	}
	return (ascii+3)/4 + other
}
