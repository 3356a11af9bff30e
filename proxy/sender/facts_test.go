package sender

import (
	"slices"
	"testing"

	"hooklock/idem/naming"
)

func TestFactsAgreeWithTheSchemes(t *testing.T) {
	for _, p := range Presets() {
		c, _ := credentials(t, p.Name)
		if p.Name == "gitlab" {
			c.Secrets = [][]byte{[]byte("whsec_AAECAwQF")}
		}
		covers := Covers(c)
		// the time of SNS is that of the message
		if got := p.Facts.SignedTime != TimeUnsigned; got != covers.Time && p.Name != "sns" {
			t.Errorf("%s: its facts say %v of a signed time, its scheme %v", p.Name, got, covers.Time)
		}
		if p.Facts.IDSigned && p.Scheme == "none" {
			t.Errorf("%s: nothing is signed, and its ID is", p.Name)
		}
		if len(p.Facts.Success) > 0 && !slices.Contains(p.Facts.Success, p.Facts.AcceptStatus()) {
			t.Errorf("%s: %d is no success to it", p.Name, p.Facts.AcceptStatus())
		}
		if (p.Facts.UsesAnswer == nil) != (p.Facts.Answer == "") {
			t.Errorf("%s: says not what the answer is used for", p.Name)
		}
		if p.Facts.Retries == RetriesSome && p.Facts.RetriesOn == "" {
			t.Errorf("%s: says not after what it retries", p.Name)
		}
		if p.Facts.Retries == RetriesNever && p.Facts.RetriesFor > 0 {
			t.Errorf("%s: never retries, and for %v", p.Name, p.Facts.RetriesFor)
		}
	}
}

func TestTheStatusOfAcceptedEventsIsASuccessToTheSender(t *testing.T) {
	for preset, want := range map[string]int{"stripe": 202, "linear": 200, "mailgun": 200, "zoom": 200, "pubsub": 202,
		"eventgrid": 202} {
		p, _ := Lookup(preset)
		if got := p.Facts.AcceptStatus(); got != want {
			t.Errorf("%s: %d, should be %d", preset, got, want)
		}
	}
}

func TestAnswersThatTheSenderUsesAreKnown(t *testing.T) {
	event, _ := Lookup("slack")
	_, secret := credentials(t, "discord")
	form := &Delivery{Fields: []naming.Field{field("Content-Type", "application/x-www-form-urlencoded")}}
	if !event.Facts.AnswerIsUsed(form) || event.Facts.AnswerIsUsed(mustSample(t, "slack", []byte("s"))) {
		t.Error("slack: commands and buttons use the answer, events do not")
	}
	discord, _ := Lookup("discord")
	if !discord.Facts.AnswerIsUsed(mustSample(t, "discord", secret)) ||
		discord.Facts.AnswerIsUsed(&Delivery{Body: []byte(`{"type":1,"event":{"type":"X"}}`)}) {
		t.Error("discord: interactions use the answer, events do not")
	}
	stripe, _ := Lookup("stripe")
	if stripe.Facts.AnswerIsUsed(form) {
		t.Error("stripe uses no answer")
	}
}
