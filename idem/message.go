package idem

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
