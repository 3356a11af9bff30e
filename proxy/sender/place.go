package sender

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"hooklock/idem/naming"
)

// places lists where a delivery may have its signature or token.
type places []place

type place struct {
	lookup *naming.Lookup
	header string // "" if it is not a header
	part   string // of the header
	parts  bool   // the header is a list of parts
}

// placesOf parses Header and From. usual is the header if neither is given; it may be empty.
func placesOf(c *Config, usual string) (places, error) {
	from := c.From
	switch {
	case c.Header != "" && len(from) > 0:
		return nil, errors.New("give either header or from")
	case c.Header != "":
		from = []string{headerSource(c.Header)}
	case len(from) == 0 && usual != "":
		from = []string{headerSource(usual)}
	case len(from) == 0:
		return nil, fmt.Errorf("give header, or from: where the delivery has the %s", describeCarried(c.Scheme))
	}
	var all places
	for _, source := range from {
		l, err := parseLookup(source)
		if err != nil {
			return nil, fmt.Errorf("from %q: %w", source, err)
		}
		p := place{lookup: l}
		if s := l.Source(); s.Kind == naming.SourceHeader {
			p.header = s.Name
			p.part, p.parts = l.Part()
		}
		all = append(all, p)
	}
	return all, nil
}

func headerSource(name string) string { return string(naming.SourceHeader) + "." + name }

// describeCarried names what a scheme looks for in a delivery, for messages.
func describeCarried(scheme string) string {
	if scheme == "hmac" {
		return "signature"
	}
	return "token"
}

// namesOfPlaces names all places, for messages.
func (all places) namesOfPlaces() string {
	var names []string
	for _, p := range all {
		names = append(names, partOf(p.lookup.Source()))
	}
	return strings.Join(names, " or ")
}

// inHead reports whether all places are in the head of a delivery.
func (all places) inHead() bool {
	return !slices.ContainsFunc(all, func(p place) bool { return p.header == "" })
}

// readSignatures appends the signatures in these places, without prefix, to the claim. It returns
// an error about a place only if no place has a signature.
func (all places) readSignatures(scheme, prefix string, d *Delivery, c *claim) error {
	var wrong error
	for i := range all {
		if err := all[i].readSignature(scheme, prefix, d, c); err != nil && (wrong == nil || isMissing(wrong)) {
			wrong = err
		}
	}
	switch {
	case len(c.signatures) > 0:
		return nil
	case len(all) > 1 && isMissing(wrong):
		return &SignatureError{scheme, Missing, all.namesOfPlaces(), "the delivery has none of them"}
	}
	return wrong
}

func isMissing(err error) bool {
	var broken *SignatureError
	return errors.As(err, &broken) && broken.Reason == Missing
}

func (p *place) readSignature(scheme, prefix string, d *Delivery, c *claim) (err error) {
	var value []byte
	if p.header == "" {
		value, err = c.lookUp(scheme, p.lookup, d)
	} else {
		value, err = d.requireOne(scheme, p.header)
	}
	part := partOf(p.lookup.Source())
	if err != nil {
		return err
	}
	if !p.parts {
		return c.addSignature(scheme, part, prefix, value)
	}
	err = &SignatureError{scheme, Missing, part, "the header has no such part"}
	for one := range naming.HeaderParts(value, p.part) {
		if len(c.signatures) >= maxSignatures {
			return &SignatureError{scheme, Malformed, part, fmt.Sprintf("has more than %d signatures", maxSignatures)}
		}
		err = c.addSignature(scheme, part, prefix, one)
	}
	return err
}

// maxSignatures bounds the signatures of one delivery that are tried.
const maxSignatures = 16

func (c *claim) addSignature(scheme, part, prefix string, value []byte) error {
	signature, err := cutPrefix(scheme, part, value, prefix)
	if err == nil {
		c.signatures = append(c.signatures, signature)
	}
	return err
}
