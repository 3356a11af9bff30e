package proxy

import (
	"bytes"
	"slices"
	"unicode"
	"unicode/utf8"

	"hooklock/idem/naming"
)

// foldedPath is a path in canonical forms, which are equal for all spellings that some server takes
// for the same path (deploy/test/bypass/measured.md has the servers). The zero value is ready for
// read, which may be called again.
type foldedPath struct {
	// early is for servers that decode before they split, late for those that split before they
	// decode. In both, no step is empty.
	early, late [][]byte
	// authority: the first step may be taken for a host, because the path begins with "//" or `/\`.
	authority bool

	text, spare []byte
}

// parsePath reads a raw path into l.
func (l *foldedPath) parsePath(raw []byte) {
	l.early, l.late = l.early[:0], l.late[:0]
	for step := range bytes.SplitSeq(raw, []byte{'/'}) {
		if step = foldStep(decodeAll(step, nil)); len(step) > 0 {
			l.late = append(l.late, step)
		}
	}
	l.spare = decodeAll(raw, l.spare[:0])
	l.authority = len(l.spare) > 1 && isSlash(l.spare[0]) && isSlash(l.spare[1])
	// a C string ends at the first, and a target that was decoded too early has its path end at the
	// others
	for _, end := range []byte{0, '?', '#'} {
		l.spare, _, _ = bytes.Cut(l.spare, []byte{end})
	}
	l.text = naming.NormalPath(l.spare, l.text)
	for step := range bytes.SplitSeq(l.text, []byte{'/'}) {
		switch step = foldStep(step); string(step) {
		case "", ".":
		case "..": // with white space around it, or NormalPath had taken it back
			l.early = l.early[:max(len(l.early)-1, 0)]
		default:
			l.early = append(l.early, step)
		}
	}
}

func isSlash(c byte) bool { return c == '/' || c == '\\' }

// decodeAll appends raw to dst with every escape decoded, also those that decoding makes ("%2541"
// is "A"), and IIS's "%u0041".
func decodeAll(raw, dst []byte) []byte {
	begin := len(dst)
	for _, c := range raw {
		dst = append(dst, c)
		for {
			r, n := escapeAtEnd(dst[begin:])
			if n == 0 {
				break
			}
			dst = dst[:len(dst)-n]
			if n == len("%41") {
				dst = append(dst, byte(r))
			} else {
				dst = utf8.AppendRune(dst, r)
			}
		}
	}
	return dst
}

// escapeAtEnd decodes the escape that b ends with, and returns its length; 0 is none.
func escapeAtEnd(b []byte) (r rune, length int) {
	for _, begin := range []string{"%u", "%U", "%"} {
		digits := 4
		if begin == "%" {
			digits = 2
		}
		length = len(begin) + digits
		if len(b) < length || string(b[len(b)-length:len(b)-digits]) != begin {
			continue
		}
		if r, ok := hexNumber(b[len(b)-digits:]); ok {
			return r, length
		}
	}
	return 0, 0
}

func hexNumber(digits []byte) (n rune, ok bool) {
	for _, c := range digits {
		switch {
		case '0' <= c && c <= '9':
			n = n<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			n = n<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return n, true
}

// foldStep returns one step in small letters, without the white space around it and the dots behind
// it, unless that is all there is.
func foldStep(step []byte) []byte {
	folded := bytes.TrimFunc(bytes.Map(foldRune, step), isBlank)
	if string(folded) != ".." && string(folded) != "." {
		folded = bytes.TrimRightFunc(folded, func(r rune) bool { return r == '.' || isBlank(r) })
	}
	if len(folded) == 0 {
		return step
	}
	return folded
}

// foldRune maps letters to one of those that some server takes for the same: "K", "k" and the
// Kelvin sign. What URL parsers drop is dropped.
func foldRune(r rune) rune {
	switch r {
	case '\t', '\n', '\r':
		return -1
	}
	return unicode.ToLower(unicode.ToUpper(r))
}

func isBlank(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || r == utf8.RuneError || r == '\ufeff'
}

// isScript reports whether a step looks like a program that a web server runs with the rest of the
// path as its PATH_INFO. Endings that are also domains (.pl, .py) are not among them, because
// account names are often domains.
func isScript(segment []byte) bool {
	ending, found := afterLast(segment, '.')
	if !found {
		return false
	}
	switch string(bytes.TrimRight(ending, "0123456789")) {
	case "php", "phtml", "phar", "cgi", "fcgi", "asp", "aspx", "ashx", "asmx", "jsp", "jspx", "cfm":
		return true
	}
	return false
}

// afterLast returns what stands behind the last sep.
func afterLast(b []byte, sep byte) (after []byte, found bool) {
	i := bytes.LastIndexByte(b, sep)
	return b[i+1:], i >= 0
}

// isIndex reports whether a step is what a server runs for the folder that it is in.
func isIndex(segment []byte) bool {
	return isScript(segment) && bytes.HasPrefix(segment, []byte("index."))
}

// foldedSegments returns the pattern's segments in the form of a foldedPath: without an empty one
// at the end, and without the folder's index.
func foldedSegments(p *naming.Pattern) []naming.Segment {
	segments := make([]naming.Segment, 0, len(p.Segments()))
	for _, s := range p.Segments() {
		if s.Variable == "" {
			s.Literal = string(foldStep([]byte(s.Literal)))
		}
		if s != (naming.Segment{}) {
			segments = append(segments, s)
		}
	}
	if n := len(segments); !p.HasRest() && n > 0 && isIndex([]byte(segments[n-1].Literal)) {
		segments = segments[:n-1]
	}
	return segments
}

// couldBe reports whether some server takes path for one of p's.
func (p *Pattern) couldBe(path *foldedPath) bool {
	return slices.ContainsFunc([][][]byte{path.early, path.late}, func(steps [][]byte) bool {
		return p.readsAs(steps) || path.authority && len(steps) > 0 && p.readsAs(steps[1:])
	})
}

// readsAs tries a path as it is, and behind each front controller in it: /index.php/hooks/a is
// /hooks/a to Laravel and Symfony, and /shop/index.php/hooks/a is /shop/hooks/a.
func (p *Pattern) readsAs(path [][]byte) bool {
	if p.matchesStart(nil, path) {
		return true
	}
	for i, segment := range path {
		if behind := path[i+1:]; len(behind) > 0 && isScript(segment) &&
			(p.matchesStart(nil, behind) || p.matchesStart(path[:i], behind)) {
			return true
		}
	}
	return false
}

// matchesStart reports whether base and path, one behind the other, are a path of p or one that is
// longer.
func (p *Pattern) matchesStart(base, path [][]byte) bool {
	n, length := len(p.folded), len(base)+len(path)
	if length < n {
		return false
	}
	at := func(i int) []byte {
		if i < len(base) {
			return base[i]
		}
		return path[i-len(base)]
	}
	for i, s := range p.folded {
		last := i == n-1 && length == n && !p.HasRest()
		if s.Variable == "" && string(at(i)) != s.Literal && !(last && sameButEnding(at(i), s.Literal)) {
			return false
		}
	}
	if length == n || p.HasRest() || isIndex(at(n)) {
		return true
	}
	return n > 0 && (isScript(at(n-1)) || hasEnding(p.folded[n-1].Literal)) // PATH_INFO: /hook.php/x
}

// sameButEnding reports whether one of the two is the other with an ending: /hooks/a.json is
// /hooks/a to Rails, /hook is /hook.php to Apache's MultiViews.
func sameButEnding(a []byte, b string) bool {
	longer, shorter := string(a), b
	if len(longer) < len(shorter) {
		longer, shorter = shorter, longer
	}
	return len(longer) > len(shorter)+1 && longer[:len(shorter)] == shorter && longer[len(shorter)] == '.' &&
		(longer == string(a) || hasEnding(longer))
}

// hasEnding reports whether a literal ends like a file: hook.php, and not v1.0.
func hasEnding(literal string) bool {
	ending, found := afterLast([]byte(literal), '.')
	return found && len(ending) > 0 && 'a' <= ending[0] && ending[0] <= 'z'
}
