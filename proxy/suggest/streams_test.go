package suggest

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"hooklock/idem"
	"hooklock/idem/naming"
)

// attempt is what a sender knows when it sends.
type attempt struct {
	event, n int // which event, which attempt of it, from 0
	at       time.Time
	made     time.Time // of the event
	thing    int       // what it is about
	r        *rand.Rand
}

// sent is what a sender sends.
type sent struct {
	header []string
	query  string
	body   string
}

// stream is a sender.
type stream struct {
	send func(a attempt) []sent
	// repeat is how many of ten events come a second time; every third of these a third time.
	// Without failures the answers were lost.
	repeat   int
	succeed  bool // the service never fails
	event    string
	workflow string
	ignore   []string
	known    bool // what names an event can be known
}

var begin = time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)

// deliveries makes 300 deliveries of a sender.
func (s *stream) deliveries(seed uint64) []*Delivery {
	r := rand.New(rand.NewPCG(seed, 1))
	var all []*Delivery
	for event := 0; len(all) < 300; event++ {
		a := attempt{event: event, made: begin.Add(time.Duration(event) * 97 * time.Second).Add(
			time.Duration(r.IntN(900)) * time.Millisecond), thing: r.IntN(37), r: r}
		attempts := 1
		if r.IntN(10) < s.repeat {
			attempts += 1 + r.IntN(3)/2
		}
		for a.n = range attempts {
			a.at = a.made.Add(time.Duration(1+a.n*61+a.n*a.n*40+r.IntN(3)) * time.Second)
			status := 200
			if a.n < attempts-1 && !s.succeed {
				status = 503
			}
			for i, one := range s.send(a) {
				m := &naming.Message{Method: []byte("POST"), Path: []byte("/hooks/in"), Query: []byte(one.query),
					Body: []byte(one.body)}
				for _, h := range append([]string{"Host: a", "User-Agent: x/1",
					fmt.Sprintf("X-Request-Id: %x", r.Uint64())}, one.header...) {
					name, value, _ := strings.Cut(h, ": ")
					m.Fields = append(m.Fields, naming.Field{Name: []byte(name), Value: []byte(value)})
				}
				all = append(all, &Delivery{At: a.at.Add(time.Duration(i) * 40 * time.Millisecond),
					Took: 300 * time.Millisecond, Status: status, Message: m})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *Delivery) int { return a.At.Compare(b.At) })
	return all[:300]
}

func one(header []string, format string, args ...any) []sent {
	return []sent{{header: header, body: fmt.Sprintf(format, args...)}}
}

const js = "Content-Type: application/json"

// hexOf is an opaque ID that is the same each time.
func hexOf(n int) string { return fmt.Sprintf("%08x%04x", uint32(n)*2654435761, n*7919%65536) }

// others are senders beside the twelve.
func others() map[string]*stream {
	return map[string]*stream{
		"an ID in the query": {repeat: 3, event: "{query.message_id}", workflow: "in/{query.phone}", known: true,
			send: func(a attempt) []sent {
				return []sent{{query: fmt.Sprintf("message_id=%s&phone=%d&text=hi%d", hexOf(a.event), a.thing,
					a.event%9)}}
			}},
		"the states of orders": {repeat: 2, event: "{body.id}/{body.updated_at}", known: true,
			send: func(a attempt) []sent {
				return one([]string{js}, `{"id":%d,"status":"s%d","updated_at":%q,"total":%d}`, a.event/3*7919%100000,
					a.event%3, a.made.Format(time.RFC3339Nano), a.event/3)
			}},
		"a number that changes with each attempt": {repeat: 2, event: "{body.event_id}",
			ignore: []string{"body.pending"}, workflow: "in/{body.object.id}", known: true,
			send: func(a attempt) []sent {
				return one([]string{js}, `{"event_id":%q,"pending":%d,"object":{"id":"o%d","v":%d}}`, hexOf(a.event),
					3-a.n, a.thing, a.event)
			}},
		"a request ID that the sender makes": {repeat: 2, event: "{header.X-Request-Uuid}",
			workflow: "in/{body.repository.full_name}", known: true,
			send: func(a attempt) []sent {
				return one([]string{js, "X-Request-UUID: " + hexOf(a.event)},
					`{"repository":{"full_name":"r%d"},"commit":"c%s"}`, a.thing, hexOf(a.event*3))
			}},
		"one event of each order": {repeat: 2, event: "{fingerprint}", known: true,
			send: func(a attempt) []sent {
				return one([]string{js}, `{"order_id":%q,"total":%d,"created_at":%q}`, hexOf(a.event), a.event*7,
					a.made.Format(time.RFC3339))
			}},
		"one element in each batch": {repeat: 2, event: "{body.events[0].id}",
			workflow: "in/{body.events[0].target.repository}", known: true,
			send: func(a attempt) []sent {
				return one([]string{js},
					`{"events":[{"id":%q,"timestamp":%q,"target":{"repository":"r%d","digest":"d%s"}}]}`,
					hexOf(a.event), a.made.Format(time.RFC3339Nano), a.thing, hexOf(a.event*5))
			}},
		"a batch that grows": {repeat: 3, event: "{fingerprint}", known: true,
			send: func(a attempt) []sent {
				var all []string
				for i := range 1 + a.event%3 {
					all = append(all, fmt.Sprintf(`{"id":"m%s","at":%q}`, hexOf(a.event*10+i),
						a.made.Format(time.RFC3339)))
				}
				return one([]string{js}, "[%s]", strings.Join(all, ","))
			}},
		"the states of a payment, without a time": {repeat: 2, event: "{fingerprint}", workflow: "in/{body.payment_id}",
			known: true,
			send: func(a attempt) []sent {
				return one([]string{js}, `{"payment_id":"p%s","status":"s%d","amount":%d}`, hexOf(a.event/3), a.event%3,
					a.event/3*7)
			}},
		"a sequence of each device": {repeat: 2, event: "{fingerprint}", workflow: "in/{body.device}", known: true,
			send: func(a attempt) []sent {
				return one([]string{js}, `{"device":"d%d","seq_no":%d,"value":%d}`, a.event%10, a.event/10,
					a.event*7919%100)
			}},
		"IDs of each tenant": {repeat: 2, event: "{fingerprint}", workflow: "in/{body.tenant_id}", known: true,
			send: func(a attempt) []sent {
				return one([]string{js}, `{"tenant_id":"t%d","event_id":%d,"x":%d}`, a.event%5, a.event/5,
					a.event*13%97)
			}},
		"an ID of each type": {repeat: 2, event: "{body.event_id}/{header.X-Event-Type}", known: true,
			send: func(a attempt) []sent {
				return one([]string{js, fmt.Sprintf("X-Event-Type: t%d", a.event%2)},
					`{"event_id":%d,"kind":"t%d","qty":%d}`, a.event/2, a.event%2, a.event)
			}},
		"a sale and its refund": {repeat: 2, event: "{fingerprint}", workflow: "in/{form.transaction_id}", known: true,
			send: func(a attempt) []sent {
				return one([]string{"Content-Type: application/x-www-form-urlencoded"},
					"transaction_id=%s&kind=k%d&amount=%d", hexOf(a.event/2), a.event%2, a.event/2)
			}},
		"an ID of the message that is new each time": {repeat: 2, event: "{body.event.id}",
			workflow: "in/{body.customer_id}", ignore: []string{"body.meta.message_id"}, known: true,
			send: func(a attempt) []sent {
				return one([]string{js},
					`{"meta":{"message_id":"%s"},"event":{"id":"e%s","type":"x"},"customer_id":%d}`,
					hexOf(a.event*10+a.n+1), hexOf(a.event), a.thing)
			}},
		"a multipart form, whose boundary is new each time": {repeat: 2, event: "{fingerprint}", known: true,
			send: func(a attempt) []sent {
				limit := "x" + hexOf(a.event*10+a.n)
				return one([]string{"Content-Type: multipart/form-data; boundary=" + limit}, "--%s\r\n"+
					"Content-Disposition: form-data; name=\"reference\"\r\n\r\n%s\r\n--%[1]s--\r\n", limit, hexOf(a.event))
			}},
		"JSON in a form": {repeat: 2, event: "{form.payload.event_id}", workflow: "in/{form.payload.user.id}",
			ignore: []string{"form.payload.action_ts"}, known: true,
			send: func(a attempt) []sent {
				return one([]string{"Content-Type: application/x-www-form-urlencoded"}, "payload=%s",
					url.QueryEscape(fmt.Sprintf(`{"event_id":%q,"user":{"id":"U%d"},"action_ts":"%d.5"}`,
						hexOf(a.event), a.thing, a.at.Unix())))
			}},
	}
}

func streams() map[string]*stream {
	return map[string]*stream{
		"an ID in the body, and times of sending": {repeat: 2, event: "{body.id}", workflow: "in/{body.data.customer}",
			ignore: []string{"body.attempt", "body.sent_at"}, known: true,
			send: func(a attempt) []sent {
				return one([]string{js},
					`{"id":"evt_%s","type":"charge.%d","attempt":%d,"sent_at":%q,"created":%d,"data":{"customer":"cus_%s","amount":%d}}`,
					hexOf(a.event), a.event%3, a.n+1, a.at.Format(time.RFC3339), a.made.Unix(), hexOf(a.thing),
					a.event*13%700)
			}},
		"an ID in a header, and the same bytes": {repeat: 2, succeed: true, event: "{header.X-Event-Id}",
			workflow: "in/{body.account_id}", known: true,
			send: func(a attempt) []sent {
				return one([]string{js, "X-Event-Id: " + hexOf(a.event), "X-Signature: " + hexOf(a.n+a.event*100)},
					`{"account_id":%d,"total":"%d.50","state":"paid"}`, a.thing, a.event*31%977)
			}},
		"an event ID beside an ID of the delivery": {repeat: 2, succeed: true, event: "{body.event_id}",
			workflow: "in/{body.order.customer_id}", ignore: []string{"body.delivery_id"}, known: true,
			send: func(a attempt) []sent {
				return one([]string{js, "X-Delivery-Id: d" + hexOf(a.event*10+a.n)},
					`{"delivery_id":"d%s","event_id":"e%s","order":{"customer_id":%d,"lines":[{"sku":"a","n":%d}]},"at":%q}`,
					hexOf(a.event*10+a.n), hexOf(a.event), a.thing, a.event%5, a.made.Format(time.RFC3339Nano))
			}},
		"a form": {repeat: 2, event: "{form.txn_id}", workflow: "in/{form.payer_id}", ignore: []string{"form.resend"},
			known: true,
			send: func(a attempt) []sent {
				f := url.Values{"txn_id": {hexOf(a.event)}, "payer_id": {hexOf(a.thing)},
					"mc_gross": {fmt.Sprint(a.event * 7 % 301)}, "payment_date": {a.made.Format(time.RFC3339)}}
				if a.n > 0 {
					f.Set("resend", "true")
				}
				return one([]string{"Content-Type: application/x-www-form-urlencoded"}, "%s", f.Encode())
			}},
		"XML": {repeat: 2, event: "{xml.Envelope.Body.Notification.Id}",
			workflow: "in/{xml.Envelope.Body.Notification.AccountId}", ignore: []string{"xml.Envelope.Header.SentAt"},
			known: true,
			send: func(a attempt) []sent {
				return one([]string{"Content-Type: text/xml"},
					`<s:Envelope xmlns:s="x"><s:Header><SentAt>%s</SentAt></s:Header><s:Body><Notification><Id>%s</Id><AccountId>%s</AccountId><Total>%d</Total></Notification></s:Body></s:Envelope>`,
					a.at.Format(time.RFC3339), hexOf(a.event), hexOf(a.thing), a.event*17%500)
			}},
		"GraphQL": {repeat: 2, event: "{body.variables.input.clientMutationId}",
			workflow: "in/{body.variables.input.orderId}", known: true,
			send: func(a attempt) []sent {
				return one([]string{js},
					`{"operationName":"Paid","query":"mutation Paid($input: PaidInput!) { paid(input: $input) { ok } }","variables":{"input":{"clientMutationId":%q,"orderId":"o%s","amount":%d,"paidAt":%q}}}`,
					hexOf(a.event), hexOf(a.thing), a.event*19%600, a.made.Format(time.RFC3339))
			}},
		"batches": {repeat: 2, event: "{fingerprint}", known: true,
			send: func(a attempt) []sent {
				var all []string
				for i := range 1 + a.event%4 {
					all = append(all, fmt.Sprintf(`{"id":"m%s","email":"u%d@example.com","at":%d}`, hexOf(a.event*10+i),
						(a.event+i)%50, a.made.Unix()))
				}
				return one([]string{js}, "[%s]", strings.Join(all, ","))
			}},
		"two subscriptions": {repeat: 1, event: "{header.X-Webhook-Event-Id}", workflow: "in/{body.order_id}",
			known: true,
			send: func(a attempt) (all []sent) {
				for _, hook := range []int{17, 23} {
					all = append(all, sent{header: []string{js, fmt.Sprintf("X-Webhook-Id: %d", hook),
						fmt.Sprintf("X-Webhook-Event-Id: %s", hexOf(a.event*100+hook))},
						body: fmt.Sprintf(`{"order_id":%d,"status":"s%d","updated_at":%q}`, a.thing, a.event%4,
							a.made.Format(time.RFC3339Nano))})
				}
				return all
			}},
		"no ID at all": {repeat: 2, event: "{fingerprint}", workflow: "in/{body.device_id}",
			ignore: []string{"body.sent_at"}, known: true,
			send: func(a attempt) []sent {
				return one([]string{js}, `{"device_id":"dev%d","sent_at":%q,"temperature":%d.%d,"seen":%d}`, a.thing,
					a.at.Format(time.RFC3339), a.event%40, a.event%10, a.made.UnixMilli())
			}},
		"IDs that begin again each day": {repeat: 2, event: "{body.number}/{body.date}",
			workflow: "in/{body.customer_no}", known: true,
			send: func(a attempt) []sent {
				day := begin.AddDate(0, 0, a.event/60)
				return one([]string{js}, `{"number":%d,"date":%q,"customer_no":%d,"sum":%d}`, a.event%60+1,
					day.Format(time.DateOnly), a.thing, a.event*23%811)
			}},
		"a constant ID": {repeat: 2, event: "{body.uuid}", workflow: "in/{body.host_id}", known: true,
			send: func(a attempt) []sent {
				return one([]string{js, "X-Event-Id: $UNIQID"},
					`{"id":"alert","uuid":%q,"host_id":"h%d","text":"t%d","created_at":%q}`, hexOf(a.event), a.thing,
					a.event%90, a.made.Format(time.RFC3339))
			}},
		"equal payloads that are events of their own": {repeat: 0, workflow: "in/{body.account}",
			send: func(a attempt) []sent {
				return one([]string{js}, `{"account":"a%d","cents":%d}`, a.thing%12, []int{100, 250, 500}[a.event%3])
			}},
	}
}

// TestEachSenderGetsItsKeysOrIsToldThatTheyAreNotKnown is the promise of this package: right where
// that can be known, and never wrong.
func TestEachSenderGetsItsKeysOrIsToldThatTheyAreNotKnown(t *testing.T) {
	all := streams()
	maps.Copy(all, others())
	for name, s := range all {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(5) {
				all := s.deliveries(seed)
				found := suggested(all)
				if t.Failed() {
					return
				}
				if found.EventID != s.event || found.Workflow != s.workflow && s.workflow != "" ||
					!slices.Equal(found.Ignore, s.ignore) {
					t.Errorf("seed %d: event %q, workflow %q, ignore %q\n%s%s", seed, found.EventID, found.Workflow,
						found.Ignore, found.YAML(), strings.Join(found.Sentences, "\n"))
				}
				if s.known != (found.Predicted != nil) {
					t.Errorf("predicted %v", found.Predicted)
				}
				if found.Predicted != nil {
					if got := replay(t, found, all); got != *found.Predicted {
						t.Errorf("seed %d: predicted %+v, and the route makes %+v", seed, *found.Predicted, got)
					}
				}
			}
		})
	}
}

func suggested(all []*Delivery) *Suggestion {
	set := NewSet(0)
	for _, d := range all {
		set.Add(d)
	}
	return set.Suggest(time.Time{})[0]
}

// replay names the deliveries as the suggested route does.
func replay(t *testing.T, s *Suggestion, all []*Delivery) (got Prediction) {
	t.Helper()
	workflow := s.Workflow
	if workflow == "" {
		workflow = "{route}"
	}
	keys, err := naming.NewKeys(naming.KeySpec{Route: s.Name, Workflow: workflow, EventID: s.EventID, Ignore: s.Ignore})
	if err != nil {
		t.Fatal(err)
	}
	first := map[idem.Key]idem.Fingerprint{}
	for _, d := range all {
		names, err := keys.Name(d.Message)
		if err != nil {
			t.Fatal(err)
		}
		before, known := first[names.Key]
		switch {
		case !known:
			first[names.Key] = names.Fingerprint
			got.Events++
		case before == names.Fingerprint:
			got.Repeats++
		default:
			got.Others++
		}
	}
	return got
}

func TestASenderThatIsKnownHasTheEventIDOfItsPreset(t *testing.T) {
	s := &stream{repeat: 2, send: func(a attempt) []sent {
		return one([]string{js, "Stripe-Signature: t=1,v1=" + hexOf(a.event*9+a.n)},
			`{"id":"evt_%s","pending_webhooks":%d,"data":{"object":{"customer":"c%d"}}}`, hexOf(a.event), 3-a.n,
			a.thing)
	}}
	all := s.deliveries(1)
	found := suggested(all)
	if found.Preset != "stripe" || found.EventID != "{body.id}" ||
		!slices.Equal(found.Ignore, []string{"body.pending_webhooks"}) || found.Predicted.Others > 0 {
		t.Errorf("%+v", found)
	}
	if got := replay(t, found, all); got != *found.Predicted {
		t.Errorf("predicted %+v, and the route makes %+v", *found.Predicted, got)
	}
}

func TestASenderThatSignsNothingAndWhoseIDNoTemplateReadsGetsItsPreset(t *testing.T) {
	s := &stream{repeat: 2, succeed: true, send: func(a attempt) []sent {
		return one([]string{js, "Ce-Id: " + hexOf(a.event), "Ce-Source: /x", "Ce-Type: t", "Ce-Specversion: 1.0"},
			`{"userId":%d,"n":%d}`, a.thing, a.event)
	}}
	found := suggested(s.deliveries(1))
	if yaml := found.YAML(); found.Preset != "cloudevents" || !strings.Contains(yaml, "    preset: cloudevents\n") ||
		strings.Contains(yaml, "on_missing_event_id") || found.Predicted != nil {
		t.Errorf("%s%s", yaml, strings.Join(found.Sentences, "\n"))
	}
}

func TestVariablesOfThePathKeepEventsApart(t *testing.T) {
	set := NewSet(0)
	s := streams()["an ID in the body, and times of sending"]
	for i, d := range s.deliveries(2) {
		d.Message.Path = fmt.Appendf(nil, "/hooks/shop/%d", 1000+i%2)
		set.Add(d)
	}
	found := set.Suggest(time.Time{})
	if len(found) != 1 || found[0].Path != "/hooks/shop/{id1}" ||
		!strings.HasPrefix(found[0].Workflow, "shop/{path.id1}") {
		t.Errorf("%+v", found[0])
	}
}

func TestWhatCannotBeKnownIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		s    stream
		want string
	}{
		"no repeat was seen": {stream{send: streams()["an ID in the body, and times of sending"].send},
			"no repeat was seen yet: send one again, or wait. It may be {body.id}"},
		"a notice of a thing that changed, with the same bytes each time": {stream{send: func(a attempt) []sent {
			return []sent{{header: []string{"Content-Type: application/x-www-form-urlencoded"},
				body: "id=tr_" + hexOf(a.event%150)}}
		}}, "I do not know what names an event"},
		"the state of a thing, which has an ID": {stream{send: func(a attempt) []sent {
			return one([]string{js}, `{"id":"o%d","status":"s%d","balance":%d}`, a.event%100, a.event%7, a.event*31)
		}}, "I do not know what names an event"},
		"few equal payloads that are events of their own, among retries": {stream{repeat: 2,
			send: func(a attempt) []sent {
				v := a.event - a.event%25/24 // each 25th is as the one before
				return one([]string{js}, `{"button":"b%d","presses":%d}`, v%9, v)
			}}, "they may be events of their own"},
		"an ID of the attempt alone": {stream{repeat: 2, send: func(a attempt) []sent {
			return one([]string{js}, `{"id":"%s","data":{"invoice_id":"i%d","state":"s%d"}}`, hexOf(a.event*10+a.n+1),
				a.event/3, a.event%3)
		}}, "deliveries failed, and none came again. It may be {body.id}, if that does not name the attempt"},
		"two subscriptions without an ID": {stream{send: func(a attempt) (all []sent) {
			for range 2 {
				all = append(all, one([]string{js}, `{"customer":"c%d","plan":"p%d"}`, a.thing, a.event%9)...)
			}
			return all
		}}, "I do not know what names an event"},
	} {
		found := suggested(c.s.deliveries(3))
		if text := strings.Join(found.Sentences, "\n"); found.EventID != "" || !strings.Contains(text, c.want) {
			t.Errorf("%s: %q\n%s", name, found.EventID, text)
		}
		if !strings.Contains(found.YAML(), "on_missing_event_id: run") {
			t.Errorf("%s: an event may be lost\n%s", name, found.YAML())
		}
	}
}

func TestHostileBodiesCostLittle(t *testing.T) {
	set := NewSet(8 << 20)
	many := bytes.NewBufferString("{")
	for i := range 10_000 {
		fmt.Fprintf(many, `"m%d":%d,`, i, i)
	}
	many.WriteString(`"z":1}`)
	bodies := [][]byte{
		many.Bytes(), bytes.Repeat([]byte("["), 1000),
		append(bytes.Repeat([]byte("["), 1000), bytes.Repeat([]byte("]"), 1000)...),
		bytes.Repeat([]byte("[0,"), 8<<20/3),
		bytes.Repeat([]byte("<a>"), 20_000), bytes.Repeat([]byte("a=1&"), 10_000),
		append([]byte(`{"`), append(bytes.Repeat([]byte("x"), 60_000), `":1}`...)...),
	}
	began := time.Now()
	for i := range 210 {
		m := &naming.Message{Path: []byte("/h"), Body: bodies[i%len(bodies)],
			Fields: []naming.Field{{Name: []byte("Content-Type"),
				Value: []byte([]string{"application/json", "application/x-www-form-urlencoded"}[i%2])}}}
		set.Add(&Delivery{At: begin.Add(time.Duration(i) * time.Second), Status: 200, Message: m})
	}
	table := set.tables[0]
	if len(table.names) > maxNames {
		t.Errorf("%d names", len(table.names))
	}
	for i := range table.rows {
		if len(table.rows[i].cells) > maxMembers {
			t.Errorf("%d members", len(table.rows[i].cells))
		}
	}
	set.Suggest(begin)
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
}
