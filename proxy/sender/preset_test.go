package sender

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"hooklock/idem"
	"hooklock/idem/naming"
)

// fact is the part of senders.json about one sender that this test reads.
type fact struct {
	Sender    string
	Signature struct {
		Tolerance *float64 `json:"tolerance_s"`
	}
	Timeout any `json:"timeout_s"`
	Retries struct {
		Automatic  any
		Retries409 any `json:"retries_409"`
		Retries4xx any `json:"retries_4xx"`
	}
}

// readFacts reads the facts about the first senders, which are not part of this repository.
func readFacts(t *testing.T) map[string]fact {
	t.Helper()
	root := os.Getenv("HOOKLOCK_SHARED")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared")
	}
	data, err := os.ReadFile(filepath.Join(root, "facts", "senders.json"))
	if err != nil {
		t.Skip("no senders.json; set HOOKLOCK_SHARED")
	}
	var all []fact
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	facts := map[string]fact{}
	for _, f := range all {
		facts[presetOf(t, f.Sender)] = f
	}
	return facts
}

// neverRetries reports whether no status makes this sender send again.
func (f fact) neverRetries() bool {
	switch automatic := f.Retries.Automatic.(type) {
	case bool:
		return !automatic || f.Sender == "Twilio" // retries failed connections only
	case string:
		return automatic != "sender-defined"
	}
	return true
}

// sendsAgain reports whether the sender is known to send again after status.
func (f fact) sendsAgain(status int) bool {
	if status >= 500 {
		return true
	}
	if f.Sender == "CloudEvents HTTP" {
		return status == 429 // with Retry-After, which the sender must observe
	}
	if f.Retries.Retries4xx == true || (status == 409 && f.Retries.Retries409 == true) {
		return true
	}
	text, _ := f.Retries.Retries4xx.(string)
	listed := slices.Contains(regexp.MustCompile(`\d{3}`).FindAllString(text, -1), strconv.Itoa(status))
	switch {
	case strings.HasPrefix(text, "only "):
		return listed
	case strings.HasPrefix(text, "not "), strings.HasPrefix(text, "all except "):
		return !listed
	}
	return false
}

// contractStatus lists the status of each decision that Hooklock answers itself, unless a preset
// replaces it.
func contractStatus() map[idem.Decision]int {
	return map[idem.Decision]int{
		idem.DecisionInFlight: 409, idem.DecisionLocked: 409, idem.DecisionWaitTimeout: 409,
		idem.DecisionQueueFull: 429, idem.DecisionMismatch: 422,
		idem.DecisionUnknown: 409, idem.DecisionExhausted: 409, idem.DecisionPaced: 409, idem.DecisionAborted: 503,
		idem.DecisionLockLost: 503, idem.DecisionUpstreamUnreachable: 502,
		idem.DecisionUpstreamFailed: 502, idem.DecisionUpstreamTimeout: 504, idem.DecisionStoreUnavailable: 503,
		idem.DecisionUnverified: 401,
		idem.DecisionRejected:   400, idem.DecisionInternalError: 500,
	}
}

func TestEveryRefusalIsOneAfterWhichTheSenderSendsAgainOrLosesNothing(t *testing.T) {
	facts := readFacts(t)
	for _, p := range Presets() {
		never, sendsAgain := p.Facts.EventIsLost(), func(status int) bool {
			return status >= 500 || p.Facts.Retries == RetriesAll
		}
		if f, ok := facts[p.Name]; ok {
			never, sendsAgain = f.neverRetries(), f.sendsAgain
			if never != (p.Facts.Retries == RetriesNever) {
				t.Errorf("%s: never retries should be %v", p.Name, never)
			}
		}
		if never && (p.Strategy != idem.Wait || p.InFlight != idem.Attach || p.OnMismatch == idem.MismatchReject) {
			t.Errorf("%s never retries: it must wait its turn, attach its copies, and not refuse a body that changed",
				p.Name)
		}
		for decision, status := range contractStatus() {
			status = cmp.Or(p.Respond[decision], status)
			switch {
			case status == 410 || status < 400:
				t.Errorf("%s: %s answers %d", p.Name, decision, status)
			case p.Name == "sns" && status < 500:
				t.Errorf("sns: %s answers %d, and every 4xx loses the message", decision, status)
			case (p.Name == "discord" || p.Name == "xero") && decision == idem.DecisionUnverified:
				if status != 401 {
					t.Errorf("%s: a wrong signature must get 401", p.Name)
				}
			case never && (decision == idem.DecisionUnverified || decision == idem.DecisionRejected):
				// No status brings such a delivery back; it may say what is wrong with it.
			case !never && !sendsAgain(status), never && status < 500:
				t.Errorf("%s: after %s with %d the event is lost", p.Name, decision, status)
			}
		}
	}
}

func TestAWaitFitsIntoTheTimeThatTheSenderGives(t *testing.T) {
	facts := readFacts(t)
	for _, p := range Presets() {
		documented, ok := facts[p.Name].Timeout.(float64)
		if ok && p.Facts.Timeout != time.Duration(documented)*time.Second {
			t.Errorf("%s: sender timeout is %v, documented %v s", p.Name, p.Facts.Timeout, documented)
		}
		if p.Strategy == idem.Wait && p.Facts.Timeout > 0 && p.UpstreamTimeout() < min(time.Second, p.Facts.Timeout/4) {
			t.Errorf("%s: %v are left for the upstream", p.Name, p.UpstreamTimeout())
		}
		if p.Retention <= p.Facts.RetriesFor {
			t.Errorf("%s: retention %v ends before the retries do (%v)", p.Name, p.Retention, p.Facts.RetriesFor)
		}
	}
}

func TestTolerancesAreThoseThatTheSendersDocument(t *testing.T) {
	for name, f := range readFacts(t) {
		p, ok := Lookup(name)
		if !ok {
			continue
		}
		var want time.Duration
		if f.Signature.Tolerance != nil {
			want = time.Duration(*f.Signature.Tolerance) * time.Second
		}
		if p.Tolerance != want {
			t.Errorf("%s: tolerance is %v, documented %v", name, p.Tolerance, want)
		}
	}
}

func TestEveryPresetHasSourcesAndNotes(t *testing.T) {
	if n := len(Presets()); n < 22 {
		t.Fatalf("%d presets", n)
	}
	if p, ok := Lookup("svix"); !ok || p.Name != "standard-webhooks" {
		t.Fatal("svix is not the alias of standard-webhooks")
	}
	for _, p := range Presets() {
		if ways := len(p.EventID) > 0 || p.NoID; ways == (p.ExtractID != nil) || p.NoID && p.EventID != "" {
			t.Errorf("%s: an ID comes from a template or from a function, or there is none", p.Name)
		}
		if len(p.Sources) == 0 || len(p.Notes) == 0 || p.IDText == "" {
			t.Errorf("%s: has no sources, notes or text of its ID", p.Name)
		}
		if _, ok := findScheme(p.Scheme); !ok {
			t.Errorf("%s: scheme %s is unknown", p.Name, p.Scheme)
		}
		if p.sample == nil || p.Page.Title == "" || p.Page.Path == "" || p.Page.Workflow == "" {
			t.Errorf("%s: has no sample, or nothing for its page", p.Name)
		}
	}
}

func TestHandshakesAreDistinguishedFromEvents(t *testing.T) {
	want := map[string]string{"syn-slack-url-verification": "url_verification", "syn-discord-ping": "PING",
		"syn-discord-webhook-event-ping":       "PING",
		"syn-zoom-url-validation":              "endpoint.url_validation",
		"syn-sns-subscription-confirmation-v2": "SubscriptionConfirmation",
		"syn-cloudevents-options":              "OPTIONS", "syn-eventgrid-validation": "SubscriptionValidation"}
	for _, v := range readVectors(t) {
		_, d, _ := v.testCase(t)
		p, ok := Lookup(v.preset(t))
		if !ok {
			t.Fatalf("no preset for %s", v.ID)
		}
		got := ""
		if h := p.Handshake(d); h != nil {
			got = h.Name
		}
		if got != want[v.ID] {
			t.Errorf("%s is the handshake %q, should be %q", v.ID, got, want[v.ID])
		}
	}
}

func TestHandshakesRestOnWhatIsSigned(t *testing.T) {
	cases := []struct {
		name, preset, body string
		field              naming.Field
		handshake          bool
	}{
		{"Slack says that its app is rate limited", "slack",
			`{"type":"app_rate_limited","team_id":"T1","minute_rate_limited":1}`, naming.Field{}, true},
		{"a message that quotes url_verification", "slack",
			`{"type":"event_callback","event":{"type":"url_verification"},"event_id":"E1"}`, naming.Field{}, false},
		{"an SNS notification with the header of a confirmation", "sns", `{"Type":"Notification","MessageId":"m"}`,
			field("x-amz-sns-message-type", "SubscriptionConfirmation"), false},
		{"an SNS unsubscription", "sns", `{"Type":"UnsubscribeConfirmation","MessageId":"m"}`, naming.Field{}, true},
		{"a Discord webhook event of type 1", "discord",
			`{"version":1,"application_id":"2","type":1,"event":{"type":"APPLICATION_AUTHORIZED"}}`, naming.Field{},
			false},
		{"a Discord body of two types", "discord", `{"id":"1","application_id":"2","type":1,"type":2}`, naming.Field{},
			false},
		{"a Discord command", "discord", `{"id":"1","application_id":"2","type":2}`, naming.Field{}, false},
		{"a Zoom event that mentions the validation", "zoom",
			`{"event":"meeting.started","payload":"endpoint.url_validation"}`, naming.Field{}, false},
		{"a Slack verification that carries an event", "slack",
			`{"type":"url_verification","event":{"type":"message"},"event_id":"E1"}`, naming.Field{}, false},
		{"a Slack body of two types", "slack", `{"type":"url_verification","type":"event_callback"}`, naming.Field{},
			false},
		{"a Zoom body of two events", "zoom", `{"event":"endpoint.url_validation","event":"meeting.started"}`,
			naming.Field{}, false},
		{"an Event Grid deletion", "eventgrid", `[{"eventType":"Microsoft.EventGrid.SubscriptionDeletedEvent"}]`,
			field("aeg-event-type", "subscriptiondeletion"), true},
		{"an Event Grid deletion as a CloudEvent", "eventgrid",
			`{"type":"Microsoft.EventGrid.SubscriptionDeletedEvent"}`, field("aeg-event-type", "SubscriptionDeletion"),
			true},
		{"an Event Grid event under the header of a validation", "eventgrid",
			`[{"eventType":"Microsoft.EventGrid.SubscriptionValidationEvent"},{"eventType":"Order.Paid"}]`,
			field("aeg-event-type", "SubscriptionValidation"), false},
		{"the header of a validation alone", "eventgrid", `[]`, field("aeg-event-type", "SubscriptionValidation"),
			false},
		{"an Event Grid event", "eventgrid", `[]`, field("aeg-event-type", "Notification"), false},
		{"a verification of LINE", "line", `{"destination":"U1","events":[]}`, naming.Field{}, true},
		{"a LINE delivery without a list", "line", `{"destination":"U1","events":null}`, naming.Field{}, false},
		{"a LINE body with two lists", "line", `{"events":[],"events":[{"webhookEventId":"1"}]}`, naming.Field{},
			false},
		{"a challenge of Twitch", "twitch", `{"challenge":"c","subscription":{"id":"1"}}`,
			field("Twitch-Eventsub-Message-Type", "notification"), true},
		{"a Twitch event under the header of a challenge", "twitch",
			`{"subscription":{"id":"1"},"event":{"challenge":"c"}}`,
			field("Twitch-Eventsub-Message-Type", "webhook_callback_verification"), false},
		{"Asana's heartbeat", "asana", `{"events":[]}`, field("X-Hook-Signature", "00"), true},
		{"an Asana heartbeat with more in it", "asana", `{"events":[],"x":1}`, field("X-Hook-Signature", "00"), false},
		{"an Asana body with two lists", "asana", `{"events":[],"events":[{"action":"changed"}]}`,
			field("X-Hook-Signature", "00"), false},
		{"Xero's intent to receive", "xero", `{"events":[],"firstEventSequence":0,"lastEventSequence":0,"entropy":"x"}`,
			naming.Field{}, true},
		{"a Xero event", "xero", `{"events":[{"resourceId":"1"}]}`, naming.Field{}, false},
		{"a Xero body with two lists", "xero", `{"events":[],"events":[{"resourceId":"1"}]}`, naming.Field{}, false},
		{"a body that is no object", "slack", `["url_verification"]`, naming.Field{}, false},
	}
	for _, c := range cases {
		p, _ := Lookup(c.preset)
		d := &Delivery{Method: []byte("POST"), Target: []byte("/"), Fields: []naming.Field{c.field},
			Body: []byte(c.body)}
		if got := p.Handshake(d) != nil; got != c.handshake {
			t.Errorf("%s: handshake is %v", c.name, got)
		}
	}
}

func TestNoEventMatchesTheHandshakeRuleOfItsPreset(t *testing.T) {
	for _, p := range Presets() {
		c, secret := credentials(t, p.Name)
		h, err := NewHandshake(p.Rule, c)
		if err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
		if h != nil && h.Matches(mustSample(t, p.Name, secret)) {
			t.Errorf("%s: its sample is taken for a handshake", p.Name)
		}
	}
}

// TestALookupDoesNotBuildAllPresets bounds the cost of Lookup: a reload of a thousand routes calls
// it about ten thousand times within ten seconds.
func TestALookupDoesNotBuildAllPresets(t *testing.T) {
	if n := testing.AllocsPerRun(10, func() {
		if _, known := Lookup("stripe"); !known {
			t.Error("stripe is not known")
		}
		_ = DefaultTolerance("stripe")
	}); n > 2 {
		t.Errorf("%v allocations", n)
	}
	one, _ := Lookup("stripe")
	one.Name = "mine"
	if other, _ := Lookup("stripe"); other.Name != "stripe" {
		t.Error("a preset is everybody's")
	}
}
