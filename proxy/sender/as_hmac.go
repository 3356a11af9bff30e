package sender

import "slices"

// Most senders sign in a way that the scheme hmac can say. Such a sender's scheme is a Config, and no code of its own.

// asHMAC is the scheme of a sender for which a route with scheme hmac would say fixed. Its Tolerance is what the sender documents.
func asHMAC(fixed Config) scheme {
	return scheme{
		new:       func(c Config) (Verifier, error) { return newGenericHMAC(fixed.under(c)) },
		covers:    func(Config) Coverage { return hmacCovers(fixed) },
		tolerance: fixed.Tolerance, aged: fixed.Timestamp != "",
	}
}

// asToken is asHMAC for a sender that sends its secret as it is.
func asToken(from string) scheme {
	return scheme{token: true, new: func(c Config) (Verifier, error) { return newToken(Config{From: []string{from}}.under(c)) }}
}

// under is fixed with what the route says: its secrets and keys, and how old a delivery may be.
func (c Config) under(route Config) Config {
	c.Scheme, c.Secrets, c.PublicKeys, c.PublicURL, c.Tolerance = route.Scheme, slices.Clone(route.Secrets), route.PublicKeys, route.PublicURL, route.Tolerance
	return c
}

// SendsToken reports whether the sender sends its secret as it is and signs nothing.
func (p *Preset) SendsToken() bool { return p.verify.token }
