package sender

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"hooklock/idem/naming"
)

// hmacRenewal is the Renewal of a scheme hmac that signs what c says: everything that changes must be in the head.
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

// hmacSigner makes the signatures of a scheme hmac again, in the places where they stand. What else stands in such a header stays: a sender that
// nobody knows here may need it.
type hmacSigner struct {
	from  places
	stamp *naming.Lookup // the signed time, in a header or a part of one
	at    int            // its place in the signed content
}

func (v *macVerifier) hmacSigner(s hmacSigner) signer {
	return func(d *Delivery, keys []*mac, at time.Time) ([]naming.Field, error) {
		c, err := v.claimOf(d)
		if err != nil {
			return nil, err
		}
		fresh := slices.Clone(c.parts)
		fresh[s.at] = stampLike(fresh[s.at], at)
		fields := s.fields(d)
		name := s.stamp.Source().Name
		part, _ := s.stamp.Part()
		if part != "" {
			part += "="
		}
		replaced := fields.replaceItem(name, part, c.parts[s.at], fresh[s.at])
		for _, m := range keys {
			replaced = fields.replaceText(m.sign(v.encoding, c.parts...), m.sign(v.encoding, fresh...)) && replaced
		}
		if !replaced {
			return nil, ErrNotRenewable // digits in an odd mixture of cases, or a time in quotes
		}
		return fields, nil
	}
}

// changing are the fields whose values change.
type changing []naming.Field

// fields are those of d that have the time or a signature, each once.
func (s *hmacSigner) fields(d *Delivery) changing {
	names := []string{s.stamp.Source().Name}
	for _, p := range s.from {
		names = append(names, p.header)
	}
	var fields changing
	for _, name := range names {
		seen := slices.ContainsFunc(fields, func(f naming.Field) bool { return equalName(f.Name, name) })
		if value, count := d.header(name); count > 0 && !seen {
			fields = append(fields, naming.Field{Name: []byte(name), Value: bytes.Clone(value)})
		}
	}
	return fields
}

// replaceText puts fresh in the place of old, in lower or upper case, wherever it stands.
func (fields changing) replaceText(old, fresh []byte) bool {
	done := false
	for i, f := range fields {
		for _, old := range [][]byte{old, bytes.ToUpper(old)} {
			if bytes.Contains(f.Value, old) {
				fields[i].Value, done = bytes.ReplaceAll(f.Value, old, fresh), true
				break
			}
		}
	}
	return done
}

// replaceItem puts fresh in the place of an item of the header called name that is before and old; without before, of the whole value.
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

// isBetween reports whether c stands between the items of a header.
func isBetween(c byte) bool { return strings.IndexByte(",; \t", c) >= 0 }

// stampLike writes at as old is written: seconds, milliseconds or RFC 3339.
func stampLike(old []byte, at time.Time) []byte {
	if _, err := time.Parse(time.RFC3339, string(old)); err != nil {
		return digitsOf(at, unitOf(old))
	}
	if bytes.IndexByte(old, '.') < 0 {
		return []byte(at.UTC().Format(time.RFC3339))
	}
	return []byte(rfc3339(at))
}
