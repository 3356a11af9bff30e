package suggest

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// kind is what a value looks like.
type kind uint8

const (
	kindText   kind = iota
	kindNumber      // digits
	kindBool
	kindTime  // a date, or a time not far from that of the delivery
	kindNow   // a time within a minute of the delivery
	kindCount = iota
)

// kindOf looks at a value that came at a time.
func kindOf(value []byte, at time.Time) kind {
	text := bytes.TrimSpace(value[:min(len(value), 40)])
	switch string(text) {
	case "true", "false", "TRUE", "FALSE", "True", "False":
		return kindBool
	}
	number := len(text) > 0 && len(bytes.Trim(text, "0123456789.-")) == 0
	if t, ok := timeOf(text, number); ok {
		off := t.Sub(at).Abs()
		switch {
		case off < time.Minute:
			return kindNow
		case !number, off < 90*24*time.Hour:
			return kindTime
		}
	}
	if number {
		return kindNumber
	}
	return kindText
}

// timeOf reads a date, a time, or seconds or milliseconds since 1970. Most values are none, and a
// layout that does not fit costs more than to see that.
func timeOf(text []byte, number bool) (time.Time, bool) {
	switch {
	case len(text) < len("2006-01-02"):
		return time.Time{}, false
	case text[4] == '-' && text[7] == '-':
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05",
			time.DateOnly, "2006-01-02T15:04:05-0700"} {
			if t, err := time.Parse(layout, string(text)); err == nil {
				return t, true
			}
		}
	case text[3] == ',':
		for _, layout := range []string{time.RFC1123, time.RFC1123Z} {
			if t, err := time.Parse(layout, string(text)); err == nil {
				return t, true
			}
		}
	}
	if !number {
		return time.Time{}, false
	}
	n, err := strconv.ParseFloat(string(text), 64)
	switch {
	case err != nil:
		return time.Time{}, false
	case n > 1e9 && n < 4e9:
		return time.Unix(int64(n), 0), true
	case n > 1e12 && n < 4e12:
		return time.UnixMilli(int64(n)), true
	}
	return time.Time{}, false
}

// wordsOf returns the words of the last step of a path, or of the two last ones, in lower case:
// eventId, event_id and Event-Id have the same.
func wordsOf(path string, steps int) []string {
	path = strings.NewReplacer("[", ".", "]", "", `"`, "").Replace(path)
	parts := strings.Split(path, ".")
	parts = slices.DeleteFunc(parts, func(p string) bool { return p == "" || strings.Trim(p, "0123456789") == "" })
	parts = parts[min(1, len(parts)):] // body, header …
	parts = parts[max(0, len(parts)-steps):]
	var words []string
	for _, p := range parts {
		from := 0
		for i, r := range p {
			if i > from && unicode.IsUpper(r) && !unicode.IsUpper(rune(p[i-1])) || r == '_' || r == '-' {
				words = append(words, strings.ToLower(strings.Trim(p[from:i], "_-")))
				from = i
			}
		}
		words = append(words, strings.ToLower(strings.Trim(p[from:], "_-")))
	}
	return slices.DeleteFunc(words, func(w string) bool { return w == "" })
}

func anyOf(words []string, of ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(of, w) })
}

// ofAttempt reports whether a name says that a member belongs to the attempt and not to the event.
func ofAttempt(path string) bool {
	words := wordsOf(path, 1)
	joined := strings.Join(words, "")
	return anyOf(words, "attempt", "attempts", "retry", "retries", "retried", "try", "tries", "redelivery",
		"redelivered", "resend", "resent", "sent", "send", "dispatched",
		"delivered", "deliveries", "nonce", "signature", "sig", "hmac", "digest", "transmission", "trace", "span") ||
		slices.Contains([]string{"isredelivery", "deliveryattempt", "deliverycount", "deliverytime", "deliveryid",
			"attemptnumber", "requestid", "trycount"}, joined)
}

// ofEvent reports whether a name says that a member tells about the event itself: when it happened,
// and not when it was sent.
func ofEvent(path string) bool {
	return anyOf(wordsOf(path, 1), "created", "updated", "modified", "changed", "occurred", "happened", "event",
		"version", "revision", "status", "state", "due", "paid", "closed")
}

// isRequestID reports whether a header is an ID that many proxies make, and some senders, too.
func isRequestID(path string) bool {
	return slices.Contains([]string{"header.x-request-id", "header.request-id", "header.x-correlation-id",
		"header.x-request-uuid"}, path)
}

// ofRequest are headers that proxies and clients make anew for each request, or that say nothing
// about the event.
func ofRequest(path string) bool {
	name, found := strings.CutPrefix(strings.ToLower(path), "header.")
	if !found {
		return false
	}
	for _, prefix := range []string{"accept", "x-forwarded-", "x-real-", "cf-", "sec-", "x-b3-", "x-amzn-", "x-envoy-",
		"x-datadog-", "x-cloud-trace", "proxy-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	if anyOf(wordsOf("header."+name, 1), "signature", "sig", "hmac", "timestamp", "date", "time", "authorization",
		"cookie", "token", "secret", "sha1", "sha256", "attempt", "retry", "nonce") {
		return true
	}
	return slices.Contains([]string{"host", "content-length", "content-type", "connection", "user-agent", "date",
		"traceparent", "tracestate", "baggage", "x-request-id", "x-correlation-id",
		"request-id", "forwarded", "via", "expect", "transfer-encoding", "content-encoding", "accept-encoding",
		"priority", "x-api-key", "origin", "referer", "b3", "uber-trace-id"}, name)
}

// hasID reports whether a name says ID, as a word of its own or at its end.
func hasID(words []string) bool {
	joined := strings.Join(words, "")
	return anyOf(words, "id", "uuid", "guid") || strings.HasSuffix(joined, "id") &&
		!slices.ContainsFunc([]string{"paid", "valid", "void", "grid", "bid", "oid", "uid", "said", "rapid", "solid"},
			func(w string) bool {
				return strings.HasSuffix(joined, w)
			})
}

// idRank says how much a name looks like that of an event's ID: 0 is the most, -1 not at all.
func idRank(path string) int {
	words, joined := wordsOf(path, 1), strings.Join(wordsOf(path, 1), "")
	isID := anyOf(words, "key", "identifier", "ids") || hasID(words)
	switch {
	case joined == "idempotencykey", isID && anyOf(words, "event", "evt", "eventid"), joined == "eventid":
		return 0
	case isID && anyOf(words, "message", "msg", "notification", "webhook", "delivery", "mutation"),
		joined == "messageid", joined == "mutationid":
		return 1
	case joined == "id", joined == "uuid", joined == "guid", joined == "idempotency":
		if parents := wordsOf(path, 2); anyOf(parents, "event", "message", "notification", "header", "envelope",
			"metadata") {
			return 1
		}
		return 2
	case isID, anyOf(words, "number", "no", "nr", "nummer", "reference", "ref", "txn", "transaction"):
		return 3
	}
	return -1
}

// things are what a workflow is about, the widest rank first: whose it is, then what it is, then
// what it is of.
var things = [][]string{
	{"customer", "customers", "account", "user", "client", "tenant", "member", "patient", "employee", "contact",
		"company", "organization", "merchant", "shop", "store", "kunde", "kunden",
		"konto", "wallet", "iban", "email", "repository", "project", "chat", "channel", "device", "vehicle", "domain",
		"subscriber", "buyer", "payer", "seller", "phone", "msisdn", "host", "node", "server", "sensor", "machine",
		"person", "student", "guest", "driver"},
	{"order", "invoice", "subscription", "contract", "cart", "payment", "charge", "ticket", "issue", "booking",
		"reservation", "case", "claim", "shipment", "parcel", "auftrag", "rechnung",
		"bestellung", "object", "resource", "entity", "upload", "job", "deployment", "envelope", "document"},
	{"product", "item", "sku", "article", "artikel", "category", "plan", "price", "warehouse", "campaign"},
}

// thingRank says what a member names: an index of things, or -1 for nothing that a workflow is
// about.
func thingRank(path string) int {
	own := wordsOf(path, 1)
	joined := strings.Join(own, "")
	if anyOf(own, "type", "event", "topic", "action", "status", "state", "currency", "country", "version", "locale",
		"language", "method", "hook", "webhook", "endpoint", "application",
		"app", "api", "mode", "mutation", "total", "amount", "price", "count", "quantity", "url") {
		return -1
	}
	names := anyOf(own, "id", "key", "number", "no", "nr", "nummer", "uuid", "guid", "ref", "reference", "name", "code",
		"email", "domain", "iban") || hasID(own)
	for rank, words := range things {
		for _, w := range words {
			if slices.Contains(own, w) && (names || len(own) == 1 || strings.HasPrefix(path, "header.")) ||
				joined == w+"id" || names && slices.Contains(wordsOf(path, 2), w) {
				return rank
			}
		}
	}
	if hasID(own) && !strings.HasPrefix(path, "header.") && !anyOf(own, "message", "idempotency", "request",
		"correlation", "session", "notification") {
		return len(things) // a thing that has no word here
	}
	return -1
}
