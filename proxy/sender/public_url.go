package sender

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// publicURL is the part of the signed URL that is not in the delivery: the origin that the sender
// calls, and the path prefix that an ingress strips.
type publicURL struct {
	base string // without a slash at its end
	// Variants of base for Twilio: without a port, and with the default port of the scheme. Both
	// may equal base.
	withoutPort, withPort string
}

func parsePublicURL(text string) (*publicURL, error) {
	if text == "" {
		return nil, errNeedsURL
	}
	if strings.ContainsAny(text, "@?#") { // the message does not show it: it may be a password or a key
		return nil, errors.New("public_url: give the origin alone, without a user; path and query are taken from " +
			"the delivery")
	}
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Hostname() == "" {
		return nil, fmt.Errorf("public_url %q: give an origin such as https://hooks.example.com", text)
	}
	base := strings.TrimRight(text, "/")
	p := &publicURL{base: base, withoutPort: base, withPort: base}
	own := ":443"
	if u.Scheme == "http" {
		own = ":80"
	}
	at := len(u.Scheme) + len("://")
	if !strings.HasPrefix(base[at:], u.Host) {
		return nil, fmt.Errorf("public_url %q: give the host in plain letters", text)
	}
	after := at + len(u.Host)
	if port := u.Port(); port != "" {
		p.withoutPort = base[:after-len(port)-1] + base[after:]
	} else {
		p.withPort = base[:after] + own + base[after:]
	}
	return p, nil
}

// signedURL returns the URL that the sender signed, provided that the target arrived unchanged.
func (p *publicURL) signedURL(scheme string, d *Delivery) ([]byte, error) {
	return joinTarget(scheme, p.base, d)
}

func joinTarget(scheme, base string, d *Delivery) ([]byte, error) {
	if len(d.Target) == 0 || d.Target[0] != '/' {
		return nil, &SignatureError{scheme, Malformed, "target",
			"the request target is not a path, so the signed URL is unknown"}
	}
	return append(append(make([]byte, 0, len(base)+len(d.Target)), base...), d.Target...), nil
}
