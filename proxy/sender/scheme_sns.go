package sender

import (
	"crypto"
	"crypto/rsa"
	_ "crypto/sha1" // SignatureVersion 1
	"fmt"
	"time"

	"github.com/valyala/fastjson"
)

// sns verifies the envelope of AWS SNS. https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html
// Its Timestamp is that of the message, also on retries, so there is no age check. SigningCertURL is not followed.
type sns struct {
	scheme string
	keys   []*rsa.PublicKey
	onlyV2 bool
}

func newSNS(c Config) (Verifier, error) {
	if c.Algorithm != "" && c.Algorithm != "sha256" {
		return nil, fmt.Errorf("algorithm %q: give sha256 to refuse SignatureVersion 1 (SHA-1), or leave it out", c.Algorithm)
	}
	keys, err := publicKeys(c.PublicKeys, onlyPEM, checkRSA)
	if err != nil {
		return nil, err
	}
	return &sns{c.Scheme, keys, c.Algorithm == "sha256"}, nil
}

// Verify implements Verifier.
func (v *sns) Verify(d *Delivery, _ time.Time) error {
	if raw, _ := d.header("x-amz-sns-rawdelivery"); len(raw) > 0 && !equalName(raw, "false") {
		return &SignatureError{v.scheme, Missing, "body.Signature", "raw message delivery is not signed: turn it off, or set scheme: none"}
	}
	parsed, err := parseStrict(v.scheme, d.Body)
	if err != nil {
		return err
	}
	if halfCharacter(d.Body) {
		return &SignatureError{v.scheme, Malformed, "body", "holds half a character, which JSON parsers read differently"}
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
		return &SignatureError{v.scheme, Missing, "body.SignatureVersion", "the body is no signed envelope"}
	default:
		return &SignatureError{v.scheme, Malformed, "body.SignatureVersion", "is neither 1 nor 2"}
	}
	if v.onlyV2 && algorithm == crypto.SHA1 {
		return &SignatureError{v.scheme, Malformed, "body.SignatureVersion", "is 1 (SHA-1), and the configuration asks for sha256: set the topic's SignatureVersion to 2"}
	}
	signature, ok := decodeBase64(body.GetStringBytes("Signature"))
	if !ok || len(signature) == 0 {
		return &SignatureError{v.scheme, Malformed, "body.Signature", "is not there or no base64"}
	}
	message, err := v.content(body)
	if err != nil {
		return err
	}
	if !verifyRSA(v.keys, algorithm, message, signature) {
		return &SignatureError{v.scheme, Mismatch, "body.Signature", "made with another key, or changed on the way; look at the configured certificate, too: AWS changes it from time to time"}
	}
	return nil
}

// content is the signed text: name and value of each signed member, each with a line break.
func (v *sns) content(body *fastjson.Value) ([]byte, error) {
	names := snsMembers(string(body.GetStringBytes("Type")))
	if names == nil {
		return nil, &SignatureError{v.scheme, Malformed, "body.Type", "is no type of SNS message"}
	}
	var message []byte
	for _, name := range names {
		value := body.Get(name)
		if name == "Subject" && (value == nil || value.Type() == fastjson.TypeNull) {
			continue
		}
		if value == nil || value.Type() != fastjson.TypeString {
			return nil, &SignatureError{v.scheme, Malformed, "body." + name, "is not there or no text"}
		}
		message = append(append(message, name...), '\n')
		message = append(append(message, value.GetStringBytes()...), '\n')
	}
	return message, nil
}

// snsMembers names the signed members of a type of message, in their order; nil for an unknown type.
func snsMembers(kind string) []string {
	switch kind {
	case "Notification":
		return []string{"Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"}
	case "SubscriptionConfirmation", "UnsubscribeConfirmation":
		return []string{"Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"}
	}
	return nil
}
