package sender

import (
	"bytes"

	"github.com/valyala/fastjson"
)

// object parses the body as a JSON object if it contains word, else nil. The look for the word comes first because nearly no
// delivery is a handshake and parsing costs more. No sender escapes the letters of such words.
func object(body []byte, word string) *fastjson.Value {
	if !bytes.Contains(body, []byte(word)) {
		return nil
	}
	v, err := fastjson.ParseBytes(body)
	if err != nil || v.Type() != fastjson.TypeObject {
		return nil
	}
	return v
}

// memberIs tells a handshake by one member. Given twice it is none: the upstream might read the other one.
func memberIs(member, value string) func(*Delivery) bool {
	return func(d *Delivery) bool { return hasMember(object(d.Body, value), member, value) }
}

func hasMember(v *fastjson.Value, member, value string) bool {
	got, status := members(v, member)
	return status == IDFound && got[0] == value
}

// bodyType is Slack's "type". What carries an event is one, whatever its type says.
func bodyType(value string) func(*Delivery) bool {
	return func(d *Delivery) bool {
		v := object(d.Body, value)
		return hasMember(v, "type", value) && !v.Exists("event") && !v.Exists("event_id")
	}
}

// bodyKind is the "Type" of SNS. The header x-amz-sns-message-type says the same and is not signed.
func bodyKind(value string) func(*Delivery) bool { return memberIs("Type", value) }

func isZoomValidation(d *Delivery) bool {
	return memberIs("event", "endpoint.url_validation")(d)
}

// isDiscordPing: type 1 is the PING of interactions and, with a member event, an ordinary webhook event; type 0 is the PING
// of webhook events.
func isDiscordPing(d *Delivery) bool {
	v := object(d.Body, `"type"`)
	if v == nil || v.Exists("event") || countMember(v, "type") != 1 {
		return false
	}
	kind := v.Get("type")
	if kind == nil || kind.Type() != fastjson.TypeNumber {
		return false
	}
	n, err := kind.Int()
	return err == nil && (n == 0 || n == 1)
}

// isWebHookOptions is the abuse protection of CloudEvents' webhook spec, section 4.
func isWebHookOptions(d *Delivery) bool {
	return string(d.Method) == "OPTIONS" && d.has("WebHook-Request-Origin")
}

// aegType is Event Grid's own header together with the type of every event in the body: nothing of its requests is signed, and the
// header alone would let any event past its lock. What does not fit is executed as an event, so that a handshake is answered anyway.
func aegType(value, eventType string) func(*Delivery) bool {
	return func(d *Delivery) bool {
		kind, count := d.header("aeg-event-type")
		if count != 1 || !equalName(kind, value) {
			return false
		}
		v, err := fastjson.ParseBytes(d.Body)
		if err != nil {
			return false
		}
		if v.Type() == fastjson.TypeObject { // CloudEvents schema
			return hasMember(v, "type", eventType)
		}
		events := v.GetArray()
		for _, e := range events {
			if !hasMember(e, "eventType", eventType) {
				return false
			}
		}
		return len(events) > 0
	}
}
