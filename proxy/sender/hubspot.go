package sender

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"hooklock/idem"
	"hooklock/idem/naming"

	"github.com/valyala/fastjson"
)

// HubSpot returns the preset of HubSpot.
func (known) HubSpot() Preset {
	return Preset{
		Name: "hubspot", ExtractID: hubSpotID, IDText: "digest of all elements without attemptNumber",
		OnMismatch: idem.MismatchReplay, Strategy: idem.Wait, WaitTimeout: 2 * time.Second,
		RetryAfterUnit: time.Millisecond, Respond: only5xx(),
		Facts: Facts{
			Timeout: 5 * time.Second, Retries: RetriesAll, RetriesFor: day, SignedTime: TimeInHeader, IDSigned: true,
			RetriesOn: "ten times over a day; workflow webhooks after 5xx and 429 only",
			Changes:   "attemptNumber, and with it the signature",
		},
		verify: scheme{new: newHubSpot, tolerance: minutes5, covers: hubSpotCovers},
		Page: Page{
			Title: "HubSpot", Workflow: "hubspot",
			Secret: "The client secret of the app. `public_url` is the origin of its target URL.",
		},
		Renewal: RenewalPossible,
		Sources: []string{"developers.hubspot.com/docs/api/webhooks",
			"developers.hubspot.com/docs/guides/apps/authentication/validating-requests",
			"HubSpot/hubspot-api-nodejs src/utils/signature.ts"},
		Notes: []string{
			"HubSpot's eventId is not unique, so the whole batch is the ID. Workflow webhooks send no array: there " +
				"the body is the key.",
			"Workflow webhooks read Retry-After in milliseconds; Hooklock sends it so.",
			"Version 3 is checked unless `algorithm` says v1 or v2. Those are plain digests without a time, and " +
				"anybody can append to the body of a captured delivery.",
			"HubSpot's documentation signs the URL with %3A %2F %3F %40 %21 %24 %27 %28 %29 %2A %2C %3B decoded, " +
				"its library signs it as it is. Hooklock accepts both, so within the tolerance a captured delivery " +
				"can be spelled otherwise: an array keeps its ID, any other body runs again.",
			"A renewal leaves an older signature beside version 3 as it is.",
		},
		sample: func(s *sample) {
			s.setBody(`[{"eventId":1,"subscriptionId":1,"portalId":1,"appId":1,"occurredAt":`+unixMillis(s.happened)+
				`,"subscriptionType":"contact.creation","attemptNumber":0,"objectId":1,"changeSource":%s}]`, s.id)
			s.signRequest(s.secret, signHubSpot("", &publicURL{base: strings.TrimSuffix(s.url, s.request.Target)}))
		},
	}
}

const (
	hubspotV3     = "X-HubSpot-Signature-v3"
	hubspotTime   = "X-HubSpot-Request-Timestamp"
	hubspotLegacy = "X-HubSpot-Signature"
)

// newHubSpot returns the verifier of
// https://developers.hubspot.com/docs/guides/apps/authentication/validating-requests. It reads
// versions 1 and 2, plain digests without a time, only if the configuration says so: HubSpot sends
// old and new side by side, and an attacker who captured a delivery could drop the new one.
func newHubSpot(c Config) (Verifier, error) {
	switch c.Algorithm {
	case "", "v3":
		return newHubSpotV3(c)
	case "v1", "v2":
		return newHubSpotLegacy(c)
	}
	return nil, fmt.Errorf("algorithm %q: give v3, or v1 or v2 for the older signatures", c.Algorithm)
}

func newHubSpotV3(c Config) (Verifier, error) {
	public, err := parsePublicURL(c.PublicURL)
	if err != nil {
		return nil, err
	}
	v, err := sha256MACs(c)
	if err != nil {
		return nil, err
	}
	v.encoding, v.part, v.sign = inBase64, hubspotV3, signHubSpot(c.Scheme, public)
	v.covers = "the method, the public URL, the raw body and the timestamp; check public_url, too"
	v.read = func(d *Delivery, cl *claim) error {
		if !d.hasHeader(hubspotV3) && d.hasHeader(hubspotLegacy) {
			return &SignatureError{c.Scheme, Missing, hubspotV3,
				"only an older signature came: set algorithm to v1 or v2 to accept it"}
		}
		signature, err := d.requireOne(c.Scheme, hubspotV3)
		if err != nil {
			return err
		}
		stamp, err := d.requireOne(c.Scheme, hubspotTime)
		if err != nil {
			return err
		}
		url, err := public.signedURL(c.Scheme, d)
		if err != nil {
			return err
		}
		cl.signatures = append(cl.signatures, signature)
		cl.parts = append(cl.parts, d.Method, url, d.Body, stamp)
		if decoded := hubspotDecoded(url); decoded != nil {
			cl.urls, cl.urlAt = [][]byte{url, decoded}, 1
		}
		return cl.setTime(c.Scheme, hubspotTime, stamp, time.Millisecond)
	}
	return v, nil
}

// signHubSpot returns a signer for version 3. An older signature beside it signs no time and stays.
func signHubSpot(scheme string, public *publicURL) signer {
	return func(d *Delivery, keys []*mac, at time.Time) ([]naming.Field, error) {
		url, err := public.signedURL(scheme, d)
		if err != nil {
			return nil, err
		}
		if decoded := hubspotDecoded(url); decoded != nil { // keep the spelling that the sender signed
			old, _ := d.findHeader(hubspotV3)
			since, _ := d.findHeader(hubspotTime)
			if bytes.Equal(keys[0].signParts(inBase64, d.Method, decoded, d.Body, since), old) {
				url = decoded
			}
		}
		stamp := stampField(hubspotTime, at, time.Millisecond)
		signature := keys[0].signParts(inBase64, d.Method, url, d.Body, stamp.Value)
		return []naming.Field{{Name: []byte(hubspotV3), Value: signature}, stamp}, nil
	}
}

// hubspotDecoded returns a URL with the encodings of twelve characters decoded, as HubSpot's
// documentation signs it, or nil if it has none of them. HubSpot's library signs the URL as it is,
// so both are tried.
func hubspotDecoded(url []byte) []byte {
	const escaped = "%3A%2F%3F%40%21%24%27%28%29%2A%2C%3B"
	first := bytes.IndexByte(url, '%')
	if first < 0 {
		return nil
	}
	var decoded []byte
	from := 0
	for i := first; i+2 < len(url); i++ {
		if url[i] != '%' {
			continue
		}
		code := strings.ToUpper(string(url[i : i+3]))
		if at := strings.Index(escaped, code); at >= 0 && at%len(code) == 0 {
			decoded = append(append(decoded, url[from:i]...), ":/?@!$'()*,;"[at/len(code)])
			from = i + len(code)
			i = from - 1
		}
	}
	if from == 0 {
		return nil
	}
	return append(decoded, url[from:]...)
}

func newHubSpotLegacy(c Config) (Verifier, error) {
	if err := checkSecrets(c.Secrets); err != nil {
		return nil, err
	}
	v := &macVerifier{scheme: c.Scheme, digest: sha256.Size, part: hubspotLegacy, covers: coversBody}
	for _, secret := range c.Secrets {
		v.macs = append(v.macs, newPrefixDigest(secret))
	}
	var public *publicURL
	if c.Algorithm == "v2" {
		var err error
		if public, err = parsePublicURL(c.PublicURL); err != nil {
			return nil, err
		}
		v.covers = "the method, the public URL and the raw body; check public_url, too"
	}
	v.read = func(d *Delivery, cl *claim) error {
		signature, err := d.requireOne(c.Scheme, hubspotLegacy)
		if err != nil {
			return err
		}
		if version, count := d.findHeader("X-HubSpot-Signature-Version"); count > 0 && string(version) != c.Algorithm {
			return &SignatureError{c.Scheme, Malformed, "X-HubSpot-Signature-Version",
				"is not the configured version " + c.Algorithm}
		}
		cl.signatures = append(cl.signatures, signature)
		if public != nil {
			url, err := public.signedURL(c.Scheme, d)
			if err != nil {
				return err
			}
			cl.parts = append(cl.parts, d.Method, url)
		}
		cl.parts = append(cl.parts, d.Body)
		return nil
	}
	return v, nil
}

// hubSpotCovers returns the Coverage of c. The older versions sign no time.
func hubSpotCovers(c Config) Coverage {
	if c.Algorithm == "v1" || c.Algorithm == "v2" {
		return Coverage{Body: true, URL: c.Algorithm == "v2", Method: c.Algorithm == "v2"}
	}
	return Coverage{Body: true, URL: true, Method: true, Time: true, Headers: []string{hubspotTime}}
}

// hubSpotID returns the digest of the whole batch without attemptNumber, the only member that
// changes between attempts. According to HubSpot, eventId is not unique.
func hubSpotID(d *Delivery) EventID {
	h := sha256.New()
	var text []byte
	status := eachElement(d.Body, func(e *fastjson.Value) IDStatus {
		if _, status := memberTexts(e, "eventId", "subscriptionId", "occurredAt"); status != IDFound {
			return status
		}
		if countMember(e, "attemptNumber") > 1 {
			return IDAmbiguous
		}
		e.Del("attemptNumber")
		text = append(e.MarshalTo(text[:0]), '\n')
		h.Write(text)
		return IDFound
	})
	if status != IDFound {
		return EventID{Status: status}
	}
	return foundID("hubspot", hex.EncodeToString(h.Sum(nil)))
}
