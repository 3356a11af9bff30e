package sender

import (
	"crypto/ed25519"
	"encoding/hex"
	"strconv"
	"time"

	"hooklock/idem"

	"github.com/valyala/fastjson"
)

// Discord returns the preset of Discord.
func (known) Discord() Preset {
	r := only5xx()
	r[idem.DecisionUnverified] = 401
	return Preset{
		Name: "discord", ExtractID: discordID,
		IDText: "application_id and id of an interaction; webhook events have none", OnMismatch: idem.MismatchReplay,
		Respond: r,
		Facts: Facts{
			Timeout: 3 * time.Second, Retries: RetriesNever, SignedTime: TimeInHeader, IDSigned: true,
			UsesAnswer: isDiscordInteraction, Answer: "the user sees the answer to an interaction",
			GivesUp: "the URL is removed when wrong signatures get anything but 401",
		},
		Handshakes: []Handshake{{"PING", true, isDiscordPing}},
		verify:     scheme{new: newDiscord, aged: true, body: true, headers: []string{discordTime}},
		key:        keyEd25519,
		Page: Page{
			Title:    "Discord",
			Workflow: `discord/{body.guild_id ?? body.application_id ?? "other"}`,
			Verify:   "public_key_file: /etc/hooklock/discord.pub",
			Secret:   "The application's public key, 64 hex digits, as its page shows it.",
			SampleID: "2000/one",
		},
		Renewal: RenewalImpossible,
		Sources: []string{"discord/discord-api-docs developers/interactions/overview.mdx",
			"discord/discord-api-docs developers/events/webhook-events.mdx"},
		Notes: []string{
			"Discord sends wrong signatures on purpose. Do not set `mode: observe` or `scheme: none` unless the " +
				"service checks signatures itself.",
		},
		sample: func(s *sample) {
			s.setBody(
				`{"id":%s,"application_id":"2000","type":2,"token":"sample","version":1,"data":{"id":"1","name":"sample","type":1}}`, s.id)
			signature := signWith[ed25519.PrivateKey](s, 0, append([]byte(s.unixSeconds()), s.request.Body...))
			s.addSigned(discordHeader, hex.EncodeToString(signature))
			s.addSigned(discordTime, s.unixSeconds())
		},
	}
}

const (
	discordHeader = "X-Signature-Ed25519"
	discordTime   = "X-Signature-Timestamp"
)

// discord verifies Ed25519 over timestamp and raw body.
// https://discord.com/developers/docs/interactions/overview
type discord struct {
	scheme string
	keys   []ed25519.PublicKey
	age    age
	memory *scratch
}

func newDiscord(c Config) (Verifier, error) {
	keys, err := publicKeys(c.PublicKeys, hexEd25519, checkEd25519)
	if err != nil {
		return nil, err
	}
	return &discord{c.Scheme, keys, age{tolerance: c.Tolerance}, &scratch{}}, nil
}

func (v *discord) checkHead(d *Delivery) error {
	return d.requireHeaders(v.scheme, discordHeader, discordTime)
}

// Verify implements Verifier.
func (v *discord) Verify(d *Delivery, now time.Time) error {
	value, err := d.requireOne(v.scheme, discordHeader)
	if err != nil {
		return err
	}
	digits, err := d.requireOne(v.scheme, discordTime)
	if err != nil {
		return err
	}
	signature := make([]byte, ed25519.SignatureSize)
	if len(value) != hex.EncodedLen(ed25519.SignatureSize) {
		return &SignatureError{v.scheme, Malformed, discordHeader, "has " + strconv.Itoa(len(value)) +
			" characters instead of 128"}
	}
	if _, err := hex.Decode(signature, value); err != nil {
		return &SignatureError{v.scheme, Malformed, discordHeader, "is not hex"}
	}
	stamp, ok := unixTime(digits, unitOf(digits))
	if !ok {
		return &SignatureError{v.scheme, Malformed, discordTime, "is not a Unix time"}
	}
	parts := [...][]byte{digits, d.Body}
	if !v.memory.verifyEd25519(v.keys, signature, parts[:]) {
		return &SignatureError{v.scheme, Mismatch, discordHeader, "made with another key, or changed on the way: " +
			coversTime}
	}
	return v.age.checkAge(v.scheme, discordTime, stamp, now)
}

// discordID returns the ID of an interaction. Webhook events have none.
func discordID(d *Delivery) EventID {
	v, err := parseJSON(d.Body)
	if err != nil || v.Type() != fastjson.TypeObject || v.Exists("event") {
		return missingID
	}
	parts, status := memberTexts(v, "application_id", "id")
	if status != IDFound {
		return EventID{Status: status}
	}
	return foundID("discord", parts...)
}

// isDiscordInteraction reports whether d has the ID of an interaction, even an ambiguous one.
func isDiscordInteraction(d *Delivery) bool { return discordID(d).Status != IDMissing }

// isDiscordPing reports whether d is a PING: type 1 of interactions, or type 0 of webhook events.
// Type 1 with a member event is an ordinary event.
func isDiscordPing(d *Delivery) bool {
	v := objectWith(d.Body, `"type"`)
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
