package protocol

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"hooklock/idem"
)

// The index of a shared lease tells by what the keys on it can be searched, so that a search reads
// only leases that may have what it is for. It is a hint: a key that it names may be gone, or on
// another lease by now. A key on the lease that it does not name is missed by searches. Its fields
// are keys of their own, because a search reads one or two of them on all leases.

// rowsVersion is the version of all fields. A release that does not know it reads the keys on the
// lease instead.
const rowsVersion = 2

// Field is one thing that the keys on a lease are searched by.
type Field string

// The fields of an index. A new one is written for the leases that are closed from then on, and
// needs a new rowsVersion: the index of an earlier version is not read, and so is made anew.
const (
	FieldRows     Field = "rows"     // all rows: the name of the event, when it ended, its class
	FieldWorkflow Field = "workflow" // hash of the workflow
	FieldTrace    Field = "trace"    // hashes of the traces of all attempts, or of all arrivals
	FieldNames    Field = "names"    // beginning of the workflow
	FieldLabel    Field = "label"    // hashes of the values of labels
	// beginnings of the event ID, and of its parts between slashes, whatever their case
	FieldEvents Field = "events"
)

// Row is what one key on a shared lease can be searched by.
type Row struct {
	Name     string      // of the event, as in its key
	At       time.Time   // when it ended, or arrived last
	Class    Class       // what it has in common with others
	Workflow string      // of the event
	EventID  string      // the sender's; "" = it has none
	Traces   []string    // trace parents, or trace IDs
	Labels   idem.Labels // what it is found by, beside its IDs
}

// Class is what many rows have in common.
type Class struct {
	Route   string       `json:"r,omitempty"` // "" of arrivals: the execution has the route, and may be another one's
	Status  idem.Status  `json:"s,omitempty"` // of the execution; "" of arrivals
	Outcome idem.Outcome `json:"o,omitempty"` // of the execution; "" of arrivals
	// Decisions of the arrivals of an event, and ClassLost, each followed by a comma.
	Decisions string `json:"d,omitempty"`
	Forgotten bool   `json:"f,omitempty"`
}

// LeaseIndex is the summary of an index.
type LeaseIndex struct {
	Version int       `json:"v"`    // of the form of the index
	From    time.Time `json:"from"` // the earliest time of a row
	To      time.Time `json:"to"`   // the latest time of a row
	// Classes are those of the rows; nil = there are too many to tell.
	Classes []Class `json:"classes"`
}

// maxClasses bounds the classes of an index.
const maxClasses = 64

// RowOf returns the row of a record.
func RowOf(r *idem.Record) Row {
	row := Row{
		Name: nameOf(r.Scope), At: r.FinishedAt, Class: Class{Route: r.Route, Status: r.Status, Outcome: r.Outcome},
		Workflow: r.Workflow, EventID: r.EventID, Traces: []string{r.TraceParent}, Labels: r.Labels,
	}
	for i := range r.Earlier {
		row.Traces = append(row.Traces, r.Earlier[i].TraceParent)
	}
	return row
}

// ClassLost stands among the decisions of an event that is possibly lost.
const ClassLost = "lost"

// RowOfArrivals returns the row of the arrivals of an event.
func RowOfArrivals(h *idem.History) Row {
	row := Row{Name: nameOf(h.Scope), Workflow: h.Workflow, EventID: h.EventID, Labels: h.Labels}
	if f := h.Forgotten; f != nil {
		row.At, row.Class.Forgotten = f.At, true
	}
	var decisions []string
	for _, a := range append(slices.Clone(h.Newest), h.First) {
		if a.At.After(row.At) {
			row.At = a.At
		}
		row.Traces = append(row.Traces, a.TraceID)
		decisions = append(decisions, string(a.Decision), string(a.Would))
	}
	if !h.Lost.IsZero() {
		decisions = append(decisions, ClassLost)
		if h.Lost.After(row.At) {
			row.At = h.Lost
		}
	}
	slices.Sort(decisions)
	for _, d := range slices.Compact(decisions) {
		if d != "" {
			row.Class.Decisions += d + ","
		}
	}
	return row
}

// EncodeLeaseIndex returns the index of rows: its summary, and its fields.
func EncodeLeaseIndex(rows []Row) (*LeaseIndex, map[Field][]byte) {
	index := &LeaseIndex{Version: rowsVersion, Classes: []Class{}}
	for i := range rows {
		at := rows[i].At.UTC()
		if i == 0 || at.Before(index.From) {
			index.From = at
		}
		if i == 0 || at.After(index.To) {
			index.To = at
		}
	}
	fields := map[Field][]byte{
		FieldRows: index.encodeRows(rows),
		FieldNames: encodeBeginnings(rows, func(r *Row) []string {
			return []string{r.Workflow}
		}, func(s string) string { return s }),
		FieldEvents: encodeBeginnings(rows, func(r *Row) []string { return partsOf(r.EventID) }, lowerASCII),
	}
	for field, of := range map[Field]func(*Row) []uint32{
		FieldWorkflow: func(r *Row) []uint32 { return []uint32{hashOf(r.Workflow)} },
		FieldTrace: func(r *Row) []uint32 {
			return distinctHashes(r.Traces, func(t string) (uint32, bool) { return hashOf(traceOf(t)), t != "" })
		},
		FieldLabel: func(r *Row) []uint32 {
			return distinctHashes(r.Labels, func(l idem.Label) (uint32, bool) { return hashOf(l.Value), true })
		},
	} {
		fields[field] = encodeHashes(rows, of)
	}
	return index, fields
}

// RowBytes is how much of an event's name is in a row: the hash of the event ID, and enough to tell
// most of its workflows apart.
const RowBytes = 12

const rowSize = RowBytes + 4 + 1

func (x *LeaseIndex) encodeRows(rows []Row) []byte {
	b := binary.AppendVarint(make([]byte, 0, len(rows)*rowSize+10), x.From.Unix())
	numbers := map[Class]int{}
	for i := range rows {
		r := &rows[i]
		n, known := numbers[r.Class]
		if !known {
			n = len(numbers)
			numbers[r.Class] = n
			x.Classes = append(x.Classes, r.Class)
		}
		var name [RowBytes]byte
		copy(name[:], r.Name)
		b = append(b, name[:]...)
		b = binary.BigEndian.AppendUint32(b, uint32(min(r.At.Unix()-x.From.Unix(), 1<<32-1))) //nolint:gosec // From is the earliest
		b = append(b, byte(min(n, 255)))                                                      //nolint:gosec // below 256
	}
	if len(x.Classes) > maxClasses {
		x.Classes = nil
	}
	return b
}

// IndexedRow is a row as it is read from the field of all.
type IndexedRow struct {
	Name  string    // RowBytes of it
	At    time.Time // in whole seconds
	Class *Class    // nil = not known
}

var errIndex = errors.New("not an index")

// DecodeRows reads the field of all rows.
func (x *LeaseIndex) DecodeRows(b []byte) ([]IndexedRow, error) {
	base, n := binary.Varint(b)
	if n <= 0 || (len(b)-n)%rowSize != 0 {
		return nil, errIndex
	}
	rows := make([]IndexedRow, 0, len(b)/rowSize)
	for b = b[n:]; len(b) > 0; b = b[rowSize:] {
		r := IndexedRow{Name: string(b[:RowBytes]), At: time.Unix(base+int64(binary.BigEndian.Uint32(b[RowBytes:])), 0)}
		if class := int(b[rowSize-1]); class < len(x.Classes) {
			r.Class = &x.Classes[class]
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// Known reports whether this release can read the index; false for nil.
func (x *LeaseIndex) Known() bool { return x != nil && x.Version == rowsVersion }

// hashOf returns four bytes: of a million rows a search then reads one too many in 4,000 times.
func hashOf(s string) uint32 { return uint32(xxhash.Sum64String(s) >> 32) } //nolint:gosec // the upper half

// traceOf returns the trace ID of a trace parent, or s if it is a trace ID.
func traceOf(s string) string {
	if id := idem.ParseTrace(s).TraceID(); id != "" {
		return id
	}
	return s
}

func distinctHashes[T any](texts []T, of func(T) (uint32, bool)) (all []uint32) {
	for _, text := range texts {
		if h, ok := of(text); ok && !slices.Contains(all, h) {
			all = append(all, h)
		}
	}
	return all
}

// encodeHashes writes a hash for each row if each has one, else the number of a row before each
// hash.
func encodeHashes(rows []Row, of func(*Row) []uint32) []byte {
	dense, sparse := []byte{1}, []byte{0}
	for i := range rows {
		some := of(&rows[i])
		if len(some) != 1 {
			dense = nil
		}
		for _, h := range some {
			if dense != nil {
				dense = binary.BigEndian.AppendUint32(dense, h)
			}
			sparse = binary.BigEndian.AppendUint16(sparse, uint16(i)) //nolint:gosec // a lease has a thousand keys
			sparse = binary.BigEndian.AppendUint32(sparse, h)
		}
	}
	if dense != nil {
		return dense
	}
	return sparse
}
