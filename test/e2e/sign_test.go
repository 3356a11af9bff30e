package e2e

import (
	"crypto"
	"crypto/hmac"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // what SNS signature version 1 is
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// What senders sign, written here a second time on purpose: the upstream of these tests must not
// believe what Hooklock believes. Sources are the senders' own documents, as named in the notes on
// senders.

func mac(key []byte, content string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(content))
	return h.Sum(nil)
}

var errSignature = errors.New("the signature does not fit")

func equal(got string, want []byte, decode func(string) ([]byte, error)) error {
	if b, err := decode(got); err != nil || !hmac.Equal(b, want) {
		return errSignature
	}
	return nil
}

// Stripe-Signature: t=...,v1=hex(HMAC-SHA256(secret, t.body)).
func signStripe(secret, at, body string) string {
	return "t=" + at + ",v1=" + hex.EncodeToString(mac([]byte(secret), at+"."+body))
}

func verifyStripe(secret string, h http.Header, body string) error {
	at, sig := "", ""
	for part := range strings.SplitSeq(h.Get("Stripe-Signature"), ",") {
		name, value, _ := strings.Cut(part, "=")
		switch name {
		case "t":
			at = value
		case "v1":
			sig = value
		}
	}
	return equal(sig, mac([]byte(secret), at+"."+body), hex.DecodeString)
}

// X-Hub-Signature-256: sha256=hex(HMAC-SHA256(secret, body)).
func signGitHub(secret, body string) string {
	return "sha256=" + hex.EncodeToString(mac([]byte(secret), body))
}

func verifyGitHub(secret string, h http.Header, body string) error {
	return equal(strings.TrimPrefix(h.Get("X-Hub-Signature-256"), "sha256="), mac([]byte(secret), body),
		hex.DecodeString)
}

// X-Shopify-Hmac-Sha256: base64(HMAC-SHA256(secret, body)).
func signShopify(secret, body string) string {
	return base64.StdEncoding.EncodeToString(mac([]byte(secret), body))
}

func verifyShopify(secret string, h http.Header, body string) error {
	return equal(h.Get("X-Shopify-Hmac-Sha256"), mac([]byte(secret), body), base64.StdEncoding.DecodeString)
}

// X-Slack-Signature: v0=hex(HMAC-SHA256(secret, v0:timestamp:body)).
func signSlack(secret, at, body string) string {
	return "v0=" + hex.EncodeToString(mac([]byte(secret), "v0:"+at+":"+body))
}

func verifySlack(secret string, h http.Header, body string) error {
	content := "v0:" + h.Get("X-Slack-Request-Timestamp") + ":" + body
	return equal(strings.TrimPrefix(h.Get("X-Slack-Signature"), "v0="), mac([]byte(secret), content), hex.DecodeString)
}

// webhook-signature: v1,base64(HMAC-SHA256(decoded secret, id.timestamp.body)).
func signStandard(secret, id, at, body string) string {
	return "v1," + base64.StdEncoding.EncodeToString(mac(standardKey(secret), id+"."+at+"."+body))
}

func standardKey(secret string) []byte {
	decoded, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_")) // a bad one verifies nothing
	return decoded
}

func verifyStandard(secret string, h http.Header, body string) error {
	content := h.Get("Webhook-Id") + "." + h.Get("Webhook-Timestamp") + "." + body
	return equal(strings.TrimPrefix(h.Get("Webhook-Signature"), "v1,"), mac(standardKey(secret), content),
		base64.StdEncoding.DecodeString)
}

// CloudEvents are not signed: the attributes in the header have to be there.
func verifyCloudEvents(_ string, h http.Header, body string) error {
	if h.Get("Ce-Specversion") != "1.0" || h.Get("Ce-Id") == "" || h.Get("Ce-Source") == "" || h.Get("Ce-Type") == "" ||
		!json.Valid([]byte(body)) {
		return fmt.Errorf("an attribute is missing in %v", h)
	}
	return nil
}

// snsContent is what SNS signs of a message.
func snsContent(m map[string]string) string {
	names := []string{"Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"}
	if m["Type"] != "Notification" {
		names = []string{"Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"}
	}
	var b strings.Builder
	for _, name := range names {
		if value, has := m[name]; has {
			b.WriteString(name + "\n" + value + "\n")
		}
	}
	return b.String()
}

func snsHash(version, content string) (crypto.Hash, []byte) {
	if version == "1" {
		sum := sha1.Sum([]byte(content)) //nolint:gosec // what SNS signature version 1 is
		return crypto.SHA1, sum[:]
	}
	sum := sha256.Sum256([]byte(content))
	return crypto.SHA256, sum[:]
}

func signSNS(key *rsa.PrivateKey, m map[string]string) (string, error) {
	hash, sum := snsHash(m["SignatureVersion"], snsContent(m))
	signature, err := rsa.SignPKCS1v15(nil, key, hash, sum)
	if err != nil {
		return "", err
	}
	m["Signature"] = base64.StdEncoding.EncodeToString(signature)
	body, err := json.Marshal(m)
	return string(body), err
}

// verifySNS takes the public key as PEM.
func verifySNS(public string, _ http.Header, body string) error {
	block, _ := pem.Decode([]byte(public))
	if block == nil {
		return errors.New("no PEM")
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return err
	}
	key, isRSA := parsed.(*rsa.PublicKey)
	if !isRSA {
		return fmt.Errorf("a %T", parsed)
	}
	var m map[string]string
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		return err
	}
	signature, err := base64.StdEncoding.DecodeString(m["Signature"])
	if err != nil {
		return err
	}
	hash, sum := snsHash(m["SignatureVersion"], snsContent(m))
	return rsa.VerifyPKCS1v15(key, hash, sum, signature)
}
