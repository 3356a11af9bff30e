package logs

import "bytes"

// batch is lines that are written together.
type batch struct {
	missing  int64 // lines that were lost before the first one
	text     []byte
	reserved []span // the lines of text that may not be lost, in their order
}

// span is from a line's first byte to behind its last one.
type span struct{ from, to int }

func (b *batch) isEmpty() bool { return b.missing == 0 && len(b.text) == 0 }

// addLine adds a line at the end.
func (b *batch) addLine(line []byte, reserved bool) {
	if reserved {
		b.reserved = append(b.reserved, span{len(b.text), len(b.text) + len(line)})
	}
	b.text = append(b.text, line...)
}

// nextPiece returns how many bytes to write at once: whole lines, and no more than piece if one
// fits.
func (b *batch) nextPiece(piece int) int {
	if len(b.text) <= piece {
		return len(b.text)
	}
	if end := bytes.LastIndexByte(b.text[:piece], '\n') + 1; end > 0 {
		return end
	}
	if end := bytes.IndexByte(b.text, '\n') + 1; end > 0 {
		return end
	}
	return len(b.text)
}

// dropBytes forgets the first n bytes, which are whole lines, and returns how many of these were
// reserved.
func (b *batch) dropBytes(n int) (reserved int) {
	b.text = b.text[n:]
	for i := range b.reserved {
		b.reserved[i].from -= n
		b.reserved[i].to -= n
		if b.reserved[i].to <= 0 {
			reserved++
		}
	}
	b.reserved = b.reserved[reserved:]
	return reserved
}

// takeReserved takes the reserved lines out of b and returns how many others there were.
func (b *batch) takeReserved() (lost int64, reserved batch) {
	for _, s := range b.reserved {
		reserved.addLine(b.text[s.from:s.to], true)
	}
	return int64(bytes.Count(b.text, []byte{'\n'}) - len(b.reserved)), reserved
}

// withBehind returns b with the lines of another one behind. It takes over the memory of b.
func (b *batch) withBehind(other batch) batch {
	b.missing += other.missing
	for _, s := range other.reserved {
		b.reserved = append(b.reserved, span{s.from + len(b.text), s.to + len(b.text)})
	}
	b.text = append(b.text, other.text...)
	return *b
}
