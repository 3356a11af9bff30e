package protocol

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
)

// Probe is a question to one field of an index. It finds all rows of which it is true, and may find
// others.
type Probe struct {
	Field       Field  // the field that it asks
	hash, among uint32 // of hashes: those of which the bits among are hash
	beginning   string // of texts
}

// ProbeWorkflow finds the rows of a workflow.
func ProbeWorkflow(name string) Probe { return ofHash(FieldWorkflow, hashOf(name)) }

// ProbeHash16 finds the rows of workflows whose Hash16 begins with these hex digits.
func ProbeHash16(digits string) Probe {
	digits = digits[:min(len(digits), 8)]
	n, _ := strconv.ParseUint(digits+strings.Repeat("0", 8-len(digits)), 16, 32)
	return Probe{Field: FieldWorkflow, hash: uint32(n), among: ^uint32(0) << (32 - 4*len(digits))} //nolint:gosec // of 32 bits
}

// ProbeTrace finds the rows of a trace.
func ProbeTrace(id string) Probe { return ofHash(FieldTrace, hashOf(id)) }

// ProbeLabel finds the rows with a label of that value.
func ProbeLabel(value string) Probe { return ofHash(FieldLabel, hashOf(value)) }

// ProbeName finds the rows of workflows that begin so.
func ProbeName(beginning string) Probe { return Probe{Field: FieldNames, beginning: beginning} }

// ProbeEvent finds the rows of events whose ID, or a part of it, begins so, in any case.
func ProbeEvent(beginning string) Probe {
	return Probe{Field: FieldEvents, beginning: lowerASCII(beginning)}
}

func ofHash(field Field, hash uint32) Probe {
	return Probe{Field: field, hash: hash, among: ^uint32(0)}
}

// Search calls hit for the rows in an encoded field that it finds.
func (p Probe) Search(field []byte, hit func(row int)) error {
	switch {
	case p.Field == FieldNames || p.Field == FieldEvents:
		return searchBeginnings(field, p.beginning, hit)
	case len(field) > 0 && field[0] == 1 && len(field)%4 == 1:
		for i := 1; i < len(field); i += 4 {
			if binary.BigEndian.Uint32(field[i:])&p.among == p.hash {
				hit(i / 4)
			}
		}
		return nil
	case len(field) > 0 && field[0] == 0 && len(field)%6 == 1:
		for i := 1; i < len(field); i += 6 {
			if binary.BigEndian.Uint32(field[i+2:])&p.among == p.hash {
				hit(int(binary.BigEndian.Uint16(field[i:])))
			}
		}
		return nil
	}
	return errIndex
}

// Texts are written in order, each without the prefix that it shares with the one before, and only
// as far as tells it from its neighbours, and moreLetters.
const (
	moreLetters = 2
	maxParts    = 8
	textsMark   = 2 // is before them, so that none is not the same as no field
)

// partsOf returns the event ID and its parts between slashes. For very many parts it returns the
// empty text, which any beginning may match.
func partsOf(eventID string) []string {
	parts := strings.Split(eventID, "/")
	switch {
	case eventID == "":
		return nil
	case len(parts) == 1:
		return parts
	case len(parts) > maxParts:
		return []string{"\x80"}
	}
	return append(parts, eventID)
}

// lowerASCII ends before the first letter that is not ASCII: others are equal to some of those.
func lowerASCII(s string) string {
	if i := strings.IndexFunc(s, func(r rune) bool { return r >= 0x80 }); i >= 0 {
		s = s[:i]
	}
	return strings.ToLower(s)
}

// beginning is a text that a row has, or the beginning of one where it is cut.
type beginning struct {
	text string
	row  int
	cut  bool
}

func encodeBeginnings(rows []Row, of func(*Row) []string, spell func(string) string) (b []byte) {
	var all []beginning
	for i := range rows {
		for _, text := range of(&rows[i]) {
			spelled := spell(text)
			all = append(all, beginning{spelled, i, len(spelled) < len(text)})
		}
	}
	slices.SortFunc(all, func(a, b beginning) int { return strings.Compare(a.text, b.text) })
	b = append(b, textsMark)
	before, written := "", ""
	for from := 0; from < len(all); {
		text, to := all[from].text, from
		for to < len(all) && all[to].text == text {
			to++
		}
		keep := commonLength(before, text)
		if to < len(all) {
			keep = max(keep, commonLength(text, all[to].text))
		}
		short := text[:min(keep+moreLetters, len(text))]
		for _, one := range all[from:to] {
			same := commonLength(written, short)
			size := 2 * (len(short) - same)
			if one.cut || len(short) < len(text) {
				size++
			}
			b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(same)), uint64(size))  //nolint:gosec // none is negative
			b = binary.BigEndian.AppendUint16(append(b, short[same:]...), uint16(one.row)) //nolint:gosec // a lease has a thousand keys
			written = short
		}
		before, from = text, to
	}
	return b
}

func commonLength(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

func searchBeginnings(b []byte, search string, hit func(row int)) error {
	if len(b) == 0 || b[0] != textsMark {
		return errIndex
	}
	b = b[1:]
	var text []byte
	wanted := []byte(search)
	for len(b) > 0 {
		same, n := binary.Uvarint(b)
		if n <= 0 || same > uint64(len(text)) {
			return errIndex
		}
		size, m := binary.Uvarint(b[n:])
		b = b[n+max(m, 0):]
		if m <= 0 || size/2+2 > uint64(len(b)) {
			return errIndex
		}
		text = append(text[:same], b[:size/2]...)
		if bytes.HasPrefix(text, wanted) || size%2 == 1 && bytes.HasPrefix(wanted, text) {
			hit(int(binary.BigEndian.Uint16(b[size/2:])))
		}
		b = b[size/2+2:]
	}
	return nil
}
