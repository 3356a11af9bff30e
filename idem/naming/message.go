package naming

// Message is one delivery as the proxy copied it: what templates, keys and fingerprints read.
//
// The memory behind its slices belongs to the caller, which must not change it until the delivery
// has ended. A Message may be pooled: Reset it between two deliveries. It is not safe for
// concurrent use, because building names writes into its scratch memory.
type Message struct {
	Method []byte // as received
	Target []byte // the raw request target
	Path   []byte // the raw path of Target, still percent-encoded
	Query  []byte // the raw query of Target, without the "?"; nil when there is none
	Host   []byte // as received
	Fields []Field
	Body   []byte // raw, without a transfer coding
	Vars   []PathVar

	scratch scratch
}

// Field is one header line of a delivery. Both slices are owned by the Message.
type Field struct {
	Name  []byte // as the sender spelled it
	Value []byte // without the white space around it
}

// PathVar is what a route's pattern captured from the raw path, still percent-encoded.
type PathVar struct {
	Name string
	Raw  []byte
}

// Reset forgets the delivery, so that m can hold the next one. It keeps the capacity of Fields,
// Vars and of the scratch memory, and drops every other slice without reusing it.
func (m *Message) Reset() {
	fields, vars, s := m.Fields, m.Vars, m.scratch
	clear(fields)
	clear(vars)
	s.reset()
	*m = Message{Fields: fields[:0], Vars: vars[:0], scratch: s}
}

// DropScratch drops the large part of the memory in which names were built. Names that were built
// stay good.
func (m *Message) DropScratch() { m.scratch.reset() }
