package sender

import "slices"

// Most senders sign in a way that the scheme hmac can express. The scheme of such a sender is a
// Config.

// asHMAC returns the scheme of a sender whose signature a route could also express with scheme hmac
// and the settings in fixed. fixed.Tolerance is what the sender documents.
func asHMAC(fixed Config) scheme {
	return scheme{
		new:       func(c Config) (Verifier, error) { return newGenericHMAC(fixed.withRoute(c)) },
		covers:    func(Config) Coverage { return hmacCovers(fixed) },
		tolerance: fixed.Tolerance, aged: fixed.Timestamp != "", renewal: hmacRenewal(fixed),
	}
}

// asToken returns the scheme of a sender that sends its secret as it is.
func asToken(from string) scheme {
	return scheme{token: true, new: func(c Config) (Verifier, error) {
		return newToken(Config{From: []string{from}}.withRoute(c))
	}}
}

// withRoute returns c with the secrets, the keys, the public URL and the tolerance of the route.
func (c Config) withRoute(route Config) Config {
	c.Scheme, c.Secrets, c.PublicKeys, c.PublicURL, c.Tolerance = route.Scheme, slices.Clone(route.Secrets),
		route.PublicKeys, route.PublicURL, route.Tolerance
	return c
}

// SendsToken reports whether the sender sends its secret as it is and signs nothing.
func (p *Preset) SendsToken() bool { return p.verify.token }
