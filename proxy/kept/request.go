// Package kept encodes the request of a delivery that outlives its process: the request as it came,
// and nothing that is known of it.
package kept

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"
)

// Bounds on a request. They are those of the configuration's limits, and larger bytes were not
// written by Marshal.
const (
	maxHead = 1 << 20 // and each trace field, which is a line of a head
	maxBody = 1 << 30
	maxPeer = 256

	// Most is the maximum size of an encoded request.
	Most = headerLen + 3*maxHead + maxBody + maxPeer
)

// Magic begins each written request; its last byte is the version.
const Magic = "HLR\x01"

// headerLen is the magic, the arrival in nanoseconds since 1970, a byte that is 1 if it came over
// TLS and 0 if not, and the lengths of peer, trace parent, trace state, head and body.
const headerLen = len(Magic) + 8 + 1 + 5*4

// ErrFormat is returned for bytes that are no request of this version. A newer release may have
// written them; nothing is guessed.
var ErrFormat = errors.New("not a kept request of this release")

// Request is a delivery as it came. Its zero value is not valid: it has no arrival.
type Request struct {
	// Head is the request line and the header lines, as received. At most 1 MiB.
	Head []byte
	// Body is the body, as received, without its transfer coding. At most 1 GiB.
	Body []byte
	// Arrived is when the delivery came, by the clock of the process that took it; stored in
	// nanoseconds, from 1678 to 2262.
	Arrived time.Time
	// Peer is the address that it came from. At most 256 bytes; empty: not known.
	Peer string
	// TLS: it came over TLS.
	TLS bool
	// TraceParent and TraceState are the trace context that the call to the upstream continues. At
	// most 1 MiB each; empty: none.
	TraceParent, TraceState string
}

// Marshal encodes r into new bytes, which the caller owns; r keeps its own. It fails if r is beyond
// its bounds.
func (r *Request) Marshal() ([]byte, error) {
	parts := r.writtenParts()
	size := headerLen
	for i, p := range parts {
		if len(p) > bounds[i] {
			return nil, fmt.Errorf("the %s has %d bytes, and at most %d can be kept", partNames[i], len(p), bounds[i])
		}
		size += len(p)
	}
	if !r.Arrived.Equal(time.Unix(0, r.Arrived.UnixNano())) {
		return nil, fmt.Errorf("the arrival %v cannot be kept: it is not between 1678 and 2262", r.Arrived)
	}
	b := make([]byte, 0, size)
	b = append(b, Magic...)
	b = binary.BigEndian.AppendUint64(b, uint64(r.Arrived.UnixNano()))
	b = append(b, 0)
	if r.TLS {
		b[len(b)-1] = 1
	}
	for _, p := range parts {
		b = binary.BigEndian.AppendUint32(b, uint32(len(p)))
	}
	for _, p := range parts {
		b = append(b, p...)
	}
	return b, nil
}

// Unmarshal decodes what Marshal wrote, and nothing else: exactly one spelling of each request is
// read. Head and Body point into b, so b belongs to the request from then on. It returns ErrFormat.
func Unmarshal(b []byte) (*Request, error) {
	if len(b) < headerLen || string(b[:len(Magic)]) != Magic {
		return nil, ErrFormat
	}
	tls := b[len(Magic)+8]
	if tls > 1 {
		return nil, ErrFormat
	}
	lengths, rest := b[len(Magic)+9:headerLen], b[headerLen:]
	var parts [5][]byte
	for i := range parts {
		n := int64(binary.BigEndian.Uint32(lengths[4*i:]))
		if n > int64(bounds[i]) || n > int64(len(rest)) {
			return nil, ErrFormat
		}
		parts[i], rest = rest[:n:n], rest[n:]
	}
	if len(rest) > 0 {
		return nil, ErrFormat
	}
	return &Request{
		Arrived: time.Unix(0, int64(binary.BigEndian.Uint64(b[len(Magic):]))), TLS: tls == 1,
		Peer: string(parts[0]), TraceParent: string(parts[1]), TraceState: string(parts[2]),
		Head: parts[3], Body: parts[4],
	}, nil
}

// writtenParts returns the fields of r in the order in which they are written; partNames and bounds
// have the same order.
func (r *Request) writtenParts() [5][]byte {
	return [...][]byte{[]byte(r.Peer), []byte(r.TraceParent), []byte(r.TraceState), r.Head, r.Body}
}

var (
	partNames = [...]string{"peer address", "trace parent", "trace state", "head", "body"}
	bounds    = [...]int{maxPeer, maxHead, maxHead, maxHead, maxBody}
)

// The lengths fit into 32 bits, and Most into an int of 32-bit machines.
const _ = int32(math.MaxInt32 - Most)
