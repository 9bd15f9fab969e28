package toolscan

// These are parts of the model.
const (
	FeatureBits            = featureBits
	Damping                = damping
	MediumScore, HighScore = mediumScore, highScore
)

// Features returns the features of each sentence of a listing.
func Features(l Listing, known Known) (out [][]uint32) {
	s := newScanner(newNames(known.Others, known.Servers))
	s.score = func(features []uint32) float64 {
		out = append(out, append([]uint32(nil), features...))
		return 0
	}
	s.listing(l, nil)
	return out
}

// Score returns the score of a sentence.
func Score(features []uint32) float64 { return score(features) }
