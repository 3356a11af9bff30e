package sender

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"

	"github.com/valyala/fastjson"
)

// EventID is the ID that a preset's ExtractID found. As with a template, its parts are length-prefixed before they are
// hashed, and each is bounded by the caller.
type EventID struct {
	Status IDStatus
	Parts  []string
	// Source names where the parts came from, for people and for the key.
	Source string
}

// IDStatus says whether there is an ID.
type IDStatus uint8

// The statuses. They mean what they mean for templates.
const (
	IDMissing   IDStatus = iota // none, or not one that identifies this delivery: on_missing_event_id decides
	IDFound                     // Parts hold it
	IDAmbiguous                 // it is there twice: 400 event_id_ambiguous
)

var (
	missingID   = EventID{Status: IDMissing}
	ambiguousID = EventID{Status: IDAmbiguous}
)

func foundID(source string, parts ...string) EventID {
	for _, p := range parts {
		if p == "" {
			return missingID
		}
	}
	return EventID{IDFound, parts, source}
}

// members reads members of an object: strings, or numbers and booleans with their digits.
func members(v *fastjson.Value, names ...string) ([]string, IDStatus) {
	if v == nil || v.Type() != fastjson.TypeObject {
		return nil, IDMissing
	}
	values := make([]string, len(names))
	seen := make([]bool, len(names))
	twice := false
	v.GetObject().Visit(func(name []byte, m *fastjson.Value) {
		i := slices.Index(names, string(name))
		if i < 0 {
			return
		}
		twice = twice || seen[i]
		seen[i] = true
		switch m.Type() {
		case fastjson.TypeString:
			values[i] = string(m.GetStringBytes())
		case fastjson.TypeNumber, fastjson.TypeTrue, fastjson.TypeFalse:
			values[i] = m.String()
		}
	})
	if twice {
		return nil, IDAmbiguous
	}
	if slices.Contains(values, "") {
		return nil, IDMissing
	}
	return values, IDFound
}

// batchID names a batch by the parts of all its elements: of a single one as they are, of more their digest.
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

// eachMembers reads the same members of every element.
func eachMembers(source string, elements []*fastjson.Value, names ...string) EventID {
	var all [][]string
	for _, e := range elements {
		parts, status := members(e, names...)
		if status != IDFound {
			return EventID{Status: status}
		}
		all = append(all, parts)
	}
	return batchID(source, all)
}

// adyenID: duplicates have the same eventCode and pspReference; success tells a failed attempt at something from the later
// one that worked.
func adyenID(d *Delivery) EventID {
	v, err := fastjson.ParseBytes(d.Body)
	if err != nil {
		return missingID
	}
	if n := countMember(v, "notificationItems"); n != 1 {
		return onceOrAmbiguous(n)
	}
	var items []*fastjson.Value
	for _, item := range v.GetArray("notificationItems") {
		if countMember(item, "NotificationRequestItem") > 1 {
			return ambiguousID
		}
		items = append(items, item.Get("NotificationRequestItem"))
	}
	return eachMembers("adyen", items, "merchantAccountCode", "eventCode", "pspReference", "success")
}

func countMember(v *fastjson.Value, name string) int {
	if v.Type() != fastjson.TypeObject {
		return 0
	}
	n := 0
	v.GetObject().Visit(func(key []byte, _ *fastjson.Value) {
		if string(key) == name {
			n++
		}
	})
	return n
}

func onceOrAmbiguous(n int) EventID {
	if n > 1 {
		return ambiguousID
	}
	return missingID
}

// sendGridID: the elements of a batch may come in any order.
func sendGridID(d *Delivery) EventID {
	v, err := fastjson.ParseBytes(d.Body)
	if err != nil || v.Type() != fastjson.TypeArray {
		return missingID
	}
	var all [][]string
	for _, e := range v.GetArray() {
		parts, status := members(e, "sg_event_id")
		if status != IDFound {
			return EventID{Status: status}
		}
		all = append(all, parts)
	}
	slices.SortFunc(all, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	return batchID("sg_event_id", all)
}

// hubSpotID is the digest of the whole batch without attemptNumber, the one member that changes between attempts: eventId
// is documented not to be unique. It is one pass over the text of the elements, as HubSpot wrote them.
func hubSpotID(d *Delivery) EventID {
	v, err := fastjson.ParseBytes(d.Body)
	if err != nil || v.Type() != fastjson.TypeArray || len(v.GetArray()) == 0 {
		return missingID
	}
	h := sha256.New()
	var text []byte
	for _, e := range v.GetArray() {
		if _, status := members(e, "eventId", "subscriptionId", "occurredAt"); status != IDFound {
			return EventID{Status: status}
		}
		if countMember(e, "attemptNumber") > 1 {
			return ambiguousID
		}
		e.Del("attemptNumber")
		text = append(e.MarshalTo(text[:0]), '\n')
		h.Write(text)
	}
	return foundID("hubspot", hex.EncodeToString(h.Sum(nil)))
}

// discordID: only interactions have an ID.
func discordID(d *Delivery) EventID {
	v, err := fastjson.ParseBytes(d.Body)
	if err != nil || v.Type() != fastjson.TypeObject || v.Exists("event") {
		return missingID
	}
	parts, status := members(v, "application_id", "id")
	if status != IDFound {
		return EventID{Status: status}
	}
	return foundID("discord", parts...)
}

// snsID takes the message's ID from the signed body; only a raw delivery has it in the header alone.
func snsID(d *Delivery) EventID {
	arn, arns := d.header("x-amz-sns-subscription-arn")
	inHeader, ids := d.header("x-amz-sns-message-id")
	raw, raws := d.header("x-amz-sns-rawdelivery")
	if arns > 1 || ids > 1 || raws > 1 {
		return ambiguousID
	}
	if equalName(raw, "true") {
		return foundID("sns", string(arn), string(inHeader))
	}
	v, err := fastjson.ParseBytes(d.Body)
	if err != nil {
		return missingID
	}
	inBody, status := members(v, "MessageId")
	if status != IDFound {
		return EventID{Status: status}
	}
	if ids == 1 && string(inHeader) != inBody[0] {
		return ambiguousID
	}
	return foundID("sns", string(arn), inBody[0])
}

// standardID is the signed ID. It has one source under either name: a template would give the two names two keys, and whoever
// captured a delivery could have it run again by calling its headers by the other name.
func standardID(d *Delivery) EventID {
	id, count := d.header(standardSet(d) + "id")
	if count > 1 {
		return ambiguousID
	}
	return foundID("webhook-id", string(id))
}

// cloudEventID is source and id in the three modes of the HTTP binding. The mode is told by Content-Type; media types are
// compared without their case.
func cloudEventID(d *Delivery) EventID {
	kind, kinds := d.header("Content-Type")
	if kinds > 1 {
		return ambiguousID
	}
	kind = bytes.ToLower(bytes.TrimSpace(kind))
	switch {
	case bytes.HasPrefix(kind, []byte("application/cloudevents-batch")):
		v, err := fastjson.ParseBytes(d.Body)
		if err != nil || v.Type() != fastjson.TypeArray {
			return missingID
		}
		return eachMembers("cloudevents", v.GetArray(), "source", "id")
	case bytes.HasPrefix(kind, []byte("application/cloudevents")):
		v, err := fastjson.ParseBytes(d.Body)
		if err != nil {
			return missingID
		}
		parts, status := members(v, "source", "id")
		if status != IDFound {
			return EventID{Status: status}
		}
		return foundID("cloudevents", parts...)
	}
	source, sources := d.header("ce-source")
	id, ids := d.header("ce-id")
	if sources > 1 || ids > 1 {
		return ambiguousID
	}
	return foundID("cloudevents", ceHeader(source), ceHeader(id))
}

// ceHeader undoes the quotes, and then one round of percent-encoding, of an attribute in a header (HTTP binding, 3.1.3.2).
// What does not decode is taken as it is.
func ceHeader(value []byte) string {
	text := string(value)
	if len(text) >= 2 && text[0] == '"' && text[len(text)-1] == '"' {
		text = unescapeQuoted(text[1 : len(text)-1])
	}
	if decoded, err := url.PathUnescape(text); err == nil {
		return decoded
	}
	return text
}

func unescapeQuoted(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			i++
		}
		out.WriteByte(text[i])
	}
	return out.String()
}

// eventGridID: in Event Grid's own schema topic and id, in the CloudEvents schema source and id; and the subscription,
// because each gets the event.
func eventGridID(d *Delivery) EventID {
	subscription, count := d.header("aeg-subscription-name")
	if count > 1 {
		return ambiguousID
	}
	kind, _ := d.header("Content-Type")
	if bytes.HasPrefix(bytes.ToLower(kind), []byte("application/cloudevents")) || d.has("ce-id") {
		return scoped(cloudEventID(d), string(subscription))
	}
	v, err := fastjson.ParseBytes(d.Body)
	if err != nil || v.Type() != fastjson.TypeArray {
		return missingID
	}
	return scoped(eachMembers("eventgrid", v.GetArray(), "topic", "id"), string(subscription))
}

// scoped puts the subscription's name, if there is one, in front of an ID.
func scoped(id EventID, subscription string) EventID {
	if id.Status == IDFound && subscription != "" {
		id.Parts = append([]string{subscription}, id.Parts...)
	}
	return id
}
