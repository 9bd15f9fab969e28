package toolscan

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// scanner reads the texts of one listing.
type scanner struct {
	findings
	model
	rules *ruleSet
	inner bool // the text was decoded from another

	sentence sentence            // that is read
	matched  map[string]Severity // rules whose phrases the text has
	worst    scored              // the sentence of the text that the model finds worst
}

func newScanner(known *names) *scanner {
	rules := phraseRules.Get()
	return &scanner{
		findings: findings{advice: rules.advice, index: map[string]int{}},
		model:    model{known: known, score: score},
		rules:    rules,
		matched:  map[string]Severity{},
	}
}

func (s *scanner) text(t string) {
	if len(t) < minText {
		return
	}
	if !isPlain(t) {
		s.characters(t)
		s.mixed(t)
	}
	s.layout(t)
	s.markup(t)
	found := len(s.found)
	clear(s.matched)
	s.worst = scored{score: mediumScore - 1}
	if !strings.Contains(t, " ") {
		s.identifier(t)
	}
	s.sentences(t)
	if joined := unwrapped(t); joined != t {
		s.sentences(joined)
	}
	s.endText(found)
}

const (
	// minSentence is the number of words from which an identifier is read as a sentence, and
	// maxIdentifier its maximum length in bytes.
	minSentence   = 3
	maxIdentifier = 256
)

// identifier reads the words of a name such as send_all_passwords_to_us as a sentence: a model
// reads what it says.
func (s *scanner) identifier(t string) {
	if len(t) > maxIdentifier {
		return
	}
	said := &sentence{words: nameWords(t)}
	if len(said.words) < minSentence {
		return
	}
	if judged := s.judge(said.words, t); judged.score > s.worst.score {
		s.worst = judged
	}
	s.rules.text.findTerms(said)
	s.rules.text.match(said, s.isKnown, func(m *pattern, _, _ int) {
		s.matched[m.rule] = m.severity
		s.addFinding(m.rule, m.severity, t)
	})
}

// isPlain reports whether a text is printable ASCII with line breaks and tabs.
func isPlain(t string) bool {
	for i := 0; i < len(t); i++ {
		if c := t[i]; c >= 0x7f || c < ' ' && c != '\n' && c != '\t' && c != '\r' {
			return false
		}
	}
	return true
}

// sentences splits a text into sentences, and matches the phrases with each.
func (s *scanner) sentences(t string) {
	s.sentence.words = s.sentence.words[:0]
	lines := 0 // line breaks since the last word
	for i := 0; i < len(t); {
		r, n := utf8.DecodeRuneInString(t[i:])
		if unicode.IsSpace(r) {
			if r == '\n' {
				lines++
			}
			i += n
			continue
		}
		if lines > 1 {
			s.endSentence(t)
		}
		lines = 0
		end := i
		for end < len(t) {
			r, n := utf8.DecodeRuneInString(t[end:])
			if unicode.IsSpace(r) {
				break
			}
			end += n
		}
		if s.chunk(t, i, end) {
			s.endSentence(t)
		}
		i = end
	}
	s.endSentence(t)
}

const (
	quotes = "\"'`()[]{}<>*,:“”‘’…—" // what surrounds words
	ends   = ".!?;。！？"               // what ends sentences

	// maxSentence is the number of words after which a sentence ends.
	maxSentence = 4096
)

// chunk appends the words between two blanks, and reports whether a sentence ends with them.
func (s *scanner) chunk(t string, start, end int) (isEnd bool) {
	raw := t[start:end]
	s.encoded(raw)
	raw = strings.Trim(raw, quotes)
	whole := len(raw)
	raw = strings.TrimRight(raw, ends+quotes) // the quotes before them, too
	isEnd = len(raw) < whole || len(s.sentence.words) >= maxSentence
	folded := fold(raw)
	switch {
	case s.rules.isFile(folded):
		s.sentence.words = append(s.sentence.words, word{fileWord, raw, start, end})
	case isImage(folded):
		s.sentence.words = append(s.sentence.words, word{imageWord, raw, start, end})
	case isAddress(folded):
		s.sentence.words = append(s.sentence.words, word{addressWord, raw, start, end})
	case isInHome(folded):
		s.sentence.words = append(s.sentence.words, word{homeWord, raw, start, end})
	case isSecretName(raw):
		s.sentence.words = append(s.sentence.words, word{secretWord, raw, start, end})
	case s.known.words[folded]: // with dots, perhaps
		s.sentence.words = append(s.sentence.words, word{folded, raw, start, end})
	default:
		if strings.Contains(raw, "_") && !s.known.own[folded] {
			s.identifier(raw)
		}
		s.split(folded, raw, start, end)
	}
	return isEnd
}

// split appends the words of a chunk that are separated by punctuation. An identifier is one
// word.
func (s *scanner) split(folded, raw string, start, end int) {
	if r, n := utf8.DecodeRuneInString(folded); n == len(folded) && n > 0 && !isSymbol(r) {
		s.letter(folded, start, end)
		return
	}
	for part := range strings.FieldsFuncSeq(folded, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && r != '_' && r != '\'' && r != '-'
	}) {
		for _, part := range symbols(strings.Trim(part, "'-_")) {
			if len(part) <= maxWord && len(s.sentence.words) < maxSentence {
				s.sentence.words = append(s.sentence.words, word{part, raw, start, end})
			}
		}
	}
}

// letter appends a single letter: to the word before if that is made of single letters too.
func (s *scanner) letter(letter string, start, end int) {
	if n := len(s.sentence.words); n > 0 {
		if last := &s.sentence.words[n-1]; last.end == start-1 && last.raw == "" && len(last.text) < maxWord {
			last.text, last.end = last.text+letter, end
			return
		}
	}
	s.sentence.words = append(s.sentence.words, word{letter, "", start, end})
}

// minEncoded is the length in bytes of the shortest chunk that is decoded.
const minEncoded = 24

// encoded reports a chunk that is text in base64 or hexadecimal digits.
func (s *scanner) encoded(chunk string) {
	if s.inner || len(chunk) < minEncoded {
		return
	}
	for part := range strings.FieldsFuncSeq(chunk, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' ||
			r >= '0' && r <= '9' || strings.ContainsRune("+/-_=", r))
	}) {
		if len(part) < minEncoded {
			continue
		}
		clear, ok := decode(part)
		if !ok {
			continue
		}
		inner := newScanner(s.known)
		inner.inner = true
		inner.text(clear)
		severity := Medium
		for _, f := range inner.found {
			if f.Severity == High {
				severity = High
			}
		}
		s.addFinding("encoded-text", severity, excerpt(clear, 0, len(clear)))
	}
}

// endSentence matches the words since the last sentence, and forgets them.
func (s *scanner) endSentence(t string) {
	words := s.sentence.words
	s.rules.text.findTerms(&s.sentence)
	said, prefers := s.judge(words, t), false
	s.rules.text.match(&s.sentence, s.isKnown, func(m *pattern, from, to int) {
		prefers = prefers || m.rule == preference
		if m.severity != High && said.score < doubtScore {
			return
		}
		s.matched[m.rule] = m.severity
		s.addFinding(m.rule, m.severity, excerpt(t, words[from].start, words[to].end))
	})
	if prefers { // a preference, which is medium at most
		said.score = min(said.score, (mediumScore+highScore)/2)
	}
	// One word, such as a keyword of a schema, says nothing to a model.
	if len(words) > 1 && said.score > s.worst.score {
		s.worst = said
	}
	s.otherTools(t, said.score >= doubtScore)
	s.sentence.words = words[:0]
}

// isKnown reports whether the text has a finding that is as severe as one of a pattern. A
// preference is looked for in each sentence.
func (s *scanner) isKnown(m *pattern) bool {
	severity, ok := s.matched[m.rule]
	return ok && severity.rank() <= m.severity.rank() && m.rule != preference
}

// otherTools checks a sentence for instructions about the tools of other servers. An uncertain
// match counts only if the sentence is suspect.
func (s *scanner) otherTools(t string, suspect bool) {
	called := -nearby - 1 // position of the last word that means calling
	words := s.sentence.words
	for i, w := range words {
		if s.sentence.isTerm(i, s.rules.calling) {
			called = i
		}
		next := ""
		if i+1 < len(words) {
			next = words[i+1].text
		}
		known, qualified := s.known.isOther(w.text)
		if !known && s.known.servers[w.text] && (next == "tool" || next == "tools" || next == "server") {
			known, qualified = true, true
		}
		if !known && (!strings.Contains(w.text, "_") || len(w.text) < minName || s.known.own[w.text]) {
			continue
		}
		steers := s.steers(i)
		asTool := qualified || i-called <= nearby || known && s.sentence.has(s.rules.address) || next == "tool" ||
			i > 0 && words[i-1].text == "tool" || i+2 < len(words) && s.sentence.isTerm(i+2, s.rules.calling)
		switch {
		case known && steers:
			s.addFinding("other-server", High, excerpt(t, w.start, w.end))
		case suspect && asTool && (known || steers):
			s.addFinding("other-server", Medium, excerpt(t, w.start, w.end))
		}
	}
}

// nearby is the maximum number of words between a verb and the name that it is about.
const nearby = 3

// steers reports whether a word that gives an instruction is near a position.
func (s *scanner) steers(at int) bool {
	for i := max(0, at-2*nearby); i <= at+2*nearby && i < len(s.sentence.words); i++ {
		if s.sentence.isTerm(i, s.rules.steering) {
			return true
		}
	}
	return false
}

// endText adds the model's finding about a text, unless one found since is as severe.
func (s *scanner) endText(since int) {
	severity := Medium
	if s.worst.score >= highScore {
		severity = High
	}
	isAsSevere := func(f Finding) bool { return f.Severity.rank() <= severity.rank() }
	if s.worst.score >= mediumScore && !slices.ContainsFunc(s.found[since:], isAsSevere) {
		s.addFinding(instruction, severity, s.worst.words)
	}
}
