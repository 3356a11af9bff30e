package sender

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"

	"github.com/valyala/fastjson"

	"hooklock/idem/naming"
)

// EventID is the result of ExtractID. The caller prefixes its parts with their lengths before it
// hashes them, as it does for a template, and bounds each of them.
type EventID struct {
	Status IDStatus
	Parts  []string
	// Source names where the parts were read. It is part of the key.
	Source string
}

// IDStatus says whether an ID was found.
type IDStatus uint8

// The statuses have the same meaning as for templates.
const (
	IDMissing   IDStatus = iota // there is no usable ID: on_missing_event_id decides
	IDFound                     // Parts contains the ID
	IDAmbiguous                 // a part of the ID is given twice: 400 event_id_ambiguous
)

var (
	missingID   = EventID{Status: IDMissing}
	ambiguousID = EventID{Status: IDAmbiguous}
)

func foundID(source string, parts ...string) EventID {
	if slices.Contains(parts, "") {
		return missingID
	}
	return EventID{IDFound, parts, source}
}

// batchID returns the ID of a batch: the parts of a single element, or the digest over the parts of
// several.
func batchID(source string, elements [][]string) EventID {
	switch len(elements) {
	case 0:
		return missingID
	case 1:
		return foundID(source, elements[0]...)
	}
	h := sha256.New()
	var length [8]byte
	for _, parts := range elements {
		binary.BigEndian.PutUint64(length[:], uint64(len(parts)))
		h.Write(length[:])
		for _, p := range parts {
			binary.BigEndian.PutUint64(length[:], uint64(len(p)))
			h.Write(length[:])
			h.Write([]byte(p))
		}
	}
	return foundID(source+" (batch)", hex.EncodeToString(h.Sum(nil)))
}

// bodyMembers reads members of a JSON body. It copes with long bodies, which contain the sender's
// own data.
func bodyMembers(source string, d *Delivery, members ...string) EventID {
	m := d.asMessage()
	var parts []string
	for _, name := range members {
		l, err := naming.CompileLookup(name)
		if err != nil {
			return missingID
		}
		value, r := l.Read(m)
		switch r {
		case naming.ReadFound:
		case naming.ReadAmbiguous:
			return ambiguousID
		default:
			return missingID
		}
		parts = append(parts, string(value))
	}
	return foundID(source, parts...)
}

// batchOf returns the ID of a body that is a JSON array, made of the named members of every
// element.
func batchOf(source string, body []byte, names ...string) EventID {
	all, status := batchMembers(body, names...)
	if status != IDFound {
		return EventID{Status: status}
	}
	return batchID(source, all)
}

func batchMembers(body []byte, names ...string) (all [][]string, status IDStatus) {
	status = eachElement(body, func(e *fastjson.Value) IDStatus {
		parts, status := memberTexts(e, names...)
		all = append(all, parts)
		return status
	})
	return all, status
}

// eachMembers returns the ID made of the named members of every element.
func eachMembers(source string, elements []*fastjson.Value, names ...string) EventID {
	var all [][]string
	for _, e := range elements {
		parts, status := memberTexts(e, names...)
		if status != IDFound {
			return EventID{Status: status}
		}
		all = append(all, parts)
	}
	return batchID(source, all)
}
