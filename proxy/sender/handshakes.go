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

func memberIs(member, value string) func(*Delivery) bool {
	return func(d *Delivery) bool {
		v := object(d.Body, value)
		return v != nil && string(v.GetStringBytes(member)) == value
	}
}

// bodyType is Slack's "type".
func bodyType(value string) func(*Delivery) bool { return memberIs("type", value) }

// bodyKind is the "Type" of SNS. The header x-amz-sns-message-type says the same and is not signed.
func bodyKind(value string) func(*Delivery) bool { return memberIs("Type", value) }

func isZoomValidation(d *Delivery) bool {
	return memberIs("event", "endpoint.url_validation")(d)
}

// isDiscordPing: type 1 is the PING of interactions and, with a member event, an ordinary webhook event; type 0 is the PING
// of webhook events.
func isDiscordPing(d *Delivery) bool {
	v := object(d.Body, `"type"`)
	if v == nil || v.Exists("event") {
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

// aegType is Event Grid's own header; nothing of its requests is signed.
func aegType(value string) func(*Delivery) bool {
	return func(d *Delivery) bool {
		kind, count := d.header("aeg-event-type")
		return count == 1 && equalName(kind, value)
	}
}
