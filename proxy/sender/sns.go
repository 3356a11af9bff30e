package sender

import (
	"crypto"
	"crypto/rsa"
	"encoding/base64"
	"fmt"
	"time"

	"hooklock/idem"

	"github.com/valyala/fastjson"
)

// SNS returns the preset of SNS.
func (known) SNS() Preset {
	return Preset{
		Name: "sns", ExtractID: snsID, IDHeaders: []string{"x-amz-sns-subscription-arn"},
		IDText:     "x-amz-sns-subscription-arn and body.MessageId (raw delivery: x-amz-sns-message-id)",
		OnMismatch: idem.MismatchReplay,
		Strategy:   idem.Wait, WaitTimeout: 6 * time.Second, Respond: only5xx(),
		Facts: Facts{
			Timeout: 15 * time.Second, Retries: RetriesSome, RetriesFor: time.Hour, SignedTime: TimeInBody,
			RetriesOn: "after 5xx and timeouts, by default three times, 20 s apart; every 4xx loses the message",
		},
		Handshakes: []Handshake{
			{"SubscriptionConfirmation", true, bodyKind("SubscriptionConfirmation")},
			{"UnsubscribeConfirmation", true, bodyKind("UnsubscribeConfirmation")},
		},
		verify: scheme{new: newSNS},
		key:    keyRSA,
		Page: Page{
			Title: "Amazon SNS", Workflow: `sns/{header.x-amz-sns-topic-arn ?? "other"}`,
			Verify: "public_key_file: /etc/hooklock/sns.pem",
			Secret: "The certificate that SigningCertURL names: fetch it once, from AWS, and check it. Signature " +
				"versions 1 and 2 are accepted; `algorithm: sha256` refuses version 1.",
			SampleID: "arn:aws:sns:us-east-1:123456789012:Sample:00000000-0000-4000-8000-000000000001/one",
		},
		Renewal: RenewalImpossible,
		Sources: []string{"docs.aws.amazon.com/sns/latest/dg/sns-message-delivery-retries.html",
			"docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html",
			"docs.aws.amazon.com/sns/latest/dg/sns-message-and-json-formats.html"},
		Notes: []string{
			"The signature covers Message, MessageId, Subject, Timestamp, TopicArn and Type, not MessageAttributes. " +
				"A retry keeps its Timestamp, so no age is checked.",
			"SigningCertURL is never followed: add a new certificate by hand, beside the old one.",
			"x-amz-sns-subscription-arn is not signed, MessageId is. Raw message delivery is not signed at all.",
		},
		sample: func(s *sample) {
			const topic = "arn:aws:sns:us-east-1:123456789012:Sample"
			s.setType("text/plain; charset=UTF-8")
			s.addField("x-amz-sns-message-type", "Notification")
			s.addField("x-amz-sns-message-id", s.id)
			s.addField("x-amz-sns-topic-arn", topic)
			s.addField("x-amz-sns-subscription-arn", topic+":00000000-0000-4000-8000-000000000001")
			signature := signWith[*rsa.PrivateKey](s, crypto.SHA256, []byte("Message\nsample\nMessageId\n"+s.id+
				"\nTimestamp\n"+s.rfc3339()+"\nTopicArn\n"+topic+"\nType\nNotification\n"))
			s.setBody(
				`{"Type":"Notification","MessageId":%s,"TopicArn":%s,"Message":"sample","Timestamp":%s,"SignatureVersion":"2","Signature":%s,"SigningCertURL":%s}`,
				s.id, topic, s.rfc3339(), base64.StdEncoding.EncodeToString(signature), snsCertificate)
		},
	}
}

// sns verifies the envelope of AWS SNS.
// https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html A retry keeps the
// Timestamp of the message, so there is no age check. SigningCertURL is not followed.
type sns struct {
	scheme string
	keys   []*rsa.PublicKey
	onlyV2 bool
}

func newSNS(c Config) (Verifier, error) {
	if c.Algorithm != "" && c.Algorithm != "sha256" {
		return nil, fmt.Errorf("algorithm %q: give sha256 to refuse SignatureVersion 1 (SHA-1), or leave it out",
			c.Algorithm)
	}
	keys, err := publicKeys(c.PublicKeys, onlyPEM, checkRSA)
	if err != nil {
		return nil, err
	}
	return &sns{c.Scheme, keys, c.Algorithm == "sha256"}, nil
}

// Verify implements Verifier.
func (v *sns) Verify(d *Delivery, _ time.Time) error {
	if raw, _ := d.findHeader("x-amz-sns-rawdelivery"); len(raw) > 0 && !equalName(raw, "false") {
		return &SignatureError{v.scheme, Missing, "body.Signature",
			"raw message delivery is not signed: turn it off, or set scheme: none"}
	}
	parsed, err := parseStrict(v.scheme, d.Body)
	if err != nil {
		return err
	}
	if halfCharacter(d.Body) {
		return &SignatureError{v.scheme, Malformed, "body",
			"contains half a surrogate pair, which JSON parsers read differently"}
	}
	body, err := signedObject(v.scheme, "body", parsed)
	if err != nil {
		return err
	}
	var algorithm crypto.Hash
	switch string(body.GetStringBytes("SignatureVersion")) {
	case "1":
		algorithm = crypto.SHA1
	case "2":
		algorithm = crypto.SHA256
	case "":
		return &SignatureError{v.scheme, Missing, "body.SignatureVersion", "the body is not a signed envelope"}
	default:
		return &SignatureError{v.scheme, Malformed, "body.SignatureVersion", "is neither 1 nor 2"}
	}
	if v.onlyV2 && algorithm == crypto.SHA1 {
		return &SignatureError{v.scheme, Malformed, "body.SignatureVersion",
			"is 1 (SHA-1), and the configuration asks for sha256: set the topic's SignatureVersion to 2"}
	}
	signature, ok := decodeBase64(body.GetStringBytes("Signature"))
	if !ok || len(signature) == 0 {
		return &SignatureError{v.scheme, Malformed, "body.Signature", "is missing or not base64"}
	}
	message, err := v.signedText(body)
	if err != nil {
		return err
	}
	if !verifyRSA(v.keys, algorithm, message, signature) {
		return &SignatureError{v.scheme, Mismatch, "body.Signature", "made with another key, or changed on the way; " +
			"check the configured certificate, too: AWS changes it from time to time"}
	}
	return nil
}

// signedText returns the signed text: name and value of each signed member, each with a line break.
func (v *sns) signedText(body *fastjson.Value) ([]byte, error) {
	names := snsMembers(string(body.GetStringBytes("Type")))
	if names == nil {
		return nil, &SignatureError{v.scheme, Malformed, "body.Type", "is not a type of SNS message"}
	}
	var message []byte
	for _, name := range names {
		value := body.Get(name)
		if name == "Subject" && (value == nil || value.Type() == fastjson.TypeNull) {
			continue
		}
		if value == nil || value.Type() != fastjson.TypeString {
			return nil, &SignatureError{v.scheme, Malformed, "body." + name, "is missing or not a string"}
		}
		message = append(append(message, name...), '\n')
		message = append(append(message, value.GetStringBytes()...), '\n')
	}
	return message, nil
}

// snsMembers returns the signed members of a type of message in their order, or nil for an unknown
// type.
func snsMembers(kind string) []string {
	switch kind {
	case "Notification":
		return []string{"Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"}
	case "SubscriptionConfirmation", "UnsubscribeConfirmation":
		return []string{"Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"}
	}
	return nil
}

// bodyKind returns a function that recognises a handshake by the "Type" of SNS. The header
// x-amz-sns-message-type says the same and is not signed.
func bodyKind(value string) func(*Delivery) bool { return memberIs("Type", value) }

// snsID returns the ID in the signed body. A raw delivery has it only in a header.
func snsID(d *Delivery) EventID {
	arn, arns := d.findHeader("x-amz-sns-subscription-arn")
	inHeader, ids := d.findHeader("x-amz-sns-message-id")
	raw, raws := d.findHeader("x-amz-sns-rawdelivery")
	if arns > 1 || ids > 1 || raws > 1 {
		return ambiguousID
	}
	if equalName(raw, "true") {
		return foundID("sns", string(arn), string(inHeader))
	}
	v, err := parseJSON(d.Body)
	if err != nil {
		return missingID
	}
	inBody, status := memberTexts(v, "MessageId")
	if status != IDFound {
		return EventID{Status: status}
	}
	if ids == 1 && string(inHeader) != inBody[0] {
		return ambiguousID
	}
	return foundID("sns", string(arn), inBody[0])
}

// snsCertificate is the SigningCertURL of samples. It has no certificate: the test pair signs a
// sample.
const snsCertificate = "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-00000000000000000000000000000000.pem"
