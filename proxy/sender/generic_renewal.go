package sender

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"hooklock/idem/naming"
)

// hmacRenewal returns the Renewal of a scheme hmac with the content of c. Renewal is possible only
// if everything that changes is in the head.
func hmacRenewal(c Config) Renewal {
	if c.Timestamp == "" {
		return RenewalNeedless
	}
	stamp, err := parseLookup(c.Timestamp)
	if err != nil || stamp.Source().Kind != naming.SourceHeader {
		return RenewalImpossible
	}
	if from, err := placesOf(&c, ""); err != nil || !from.inHead() {
		return RenewalImpossible
	}
	return RenewalPossible
}

// hmacSigner replaces the signatures of a scheme hmac in place. It keeps the rest of such a header,
// whose meaning is not known.
type hmacSigner struct {
	from  places
	stamp *naming.Lookup // the signed time, in a header or a part of one
	at    int            // the index of its piece in the signed content
}

func (v *macVerifier) hmacSigner(s hmacSigner) signer {
	return func(d *Delivery, keys []*mac, at time.Time) ([]naming.Field, error) {
		c, err := v.claimOf(d)
		if err != nil {
			return nil, err
		}
		fresh := slices.Clone(c.parts)
		fresh[s.at] = stampLike(fresh[s.at], at)
		fields := s.changingFields(d)
		name := s.stamp.Source().Name
		part, _ := s.stamp.Part()
		if part != "" {
			part += "="
		}
		replaced := fields.replaceItem(name, part, c.parts[s.at], fresh[s.at])
		for _, m := range keys {
			replaced = fields.replaceDigest(v.encoding, m.signParts(v.encoding, c.parts...),
				m.signParts(v.encoding, fresh...)) &&
				replaced
		}
		if !replaced {
			return nil, ErrNotRenewable // hex digits of mixed case, or a time in quotes
		}
		return fields, nil
	}
}

// changing lists the fields whose values change.
type changing []naming.Field

// changingFields returns the fields of d with the time or a signature, each once.
func (s *hmacSigner) changingFields(d *Delivery) changing {
	names := []string{s.stamp.Source().Name}
	for _, p := range s.from {
		names = append(names, p.header)
	}
	var fields changing
	for _, name := range names {
		seen := slices.ContainsFunc(fields, func(f naming.Field) bool { return equalName(f.Name, name) })
		if value, count := d.findHeader(name); count > 0 && !seen {
			fields = append(fields, naming.Field{Name: []byte(name), Value: bytes.Clone(value)})
		}
	}
	return fields
}

// replaceDigest replaces each occurrence of a digest, however it is spelled, with a fresh one: in
// hex in lower case, in base64 in the same alphabet.
func (fields changing) replaceDigest(e encoding, old, fresh []byte) bool {
	done, spelled := false, e.possibleSpellings(fresh)
	if e == inHex {
		spelled = [][]byte{fresh, fresh}
	}
	for i, f := range fields {
		for way, old := range e.possibleSpellings(old) {
			if bytes.Contains(f.Value, old) {
				fields[i].Value, done = bytes.ReplaceAll(f.Value, old, spelled[way]), true
				break
			}
		}
	}
	return done
}

// replaceItem replaces the item before+old of the named header with before+fresh. If before is
// empty, it replaces the whole value.
func (fields changing) replaceItem(name, before string, old, fresh []byte) bool {
	i := slices.IndexFunc(fields, func(f naming.Field) bool { return equalName(f.Name, name) })
	value, item := fields[i].Value, before+string(old)
	if before == "" {
		fields[i].Value = bytes.Clone(fresh)
		return bytes.Equal(value, old)
	}
	for from := 0; ; {
		at := bytes.Index(value[from:], []byte(item))
		if at < 0 {
			return false
		}
		at += from
		end := at + len(item)
		if (at == 0 || isBetween(value[at-1])) && (end == len(value) || isBetween(value[end])) {
			fields[i].Value = slices.Concat(value[:at], []byte(before), fresh, value[end:])
			return true
		}
		from = at + 1
	}
}

// isBetween reports whether c separates the items of a header.
func isBetween(c byte) bool { return strings.IndexByte(",; \t", c) >= 0 }

// stampLike formats at as old is formatted: seconds, milliseconds or RFC 3339.
func stampLike(old []byte, at time.Time) []byte {
	if _, err := time.Parse(time.RFC3339, string(old)); err != nil {
		return digitsOf(at, unitOf(old))
	}
	if bytes.IndexByte(old, '.') < 0 {
		return []byte(at.UTC().Format(time.RFC3339))
	}
	return []byte(rfc3339(at))
}
