package senders

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hooklock/test/testkit"
)

func start(t *testing.T, name, url string) func(t *testing.T, event string) {
	t.Helper()
	return programs[name].start(t, url)
}

// behind starts a sender behind a Hooklock with the route that the page shows, and a service that
// takes a while.
func behind(t *testing.T, name string, each time.Duration) (service *testkit.Upstream, send func(event string)) {
	t.Helper()
	p := programs[name]
	service = slow(t, each)
	_, url := front(t, p.page, p.route, service)
	sendTo := start(t, name, url)
	return service, func(event string) { sendTo(t, event) }
}

func TestAlertmanagerTellsOfFiringAndResolved(t *testing.T) {
	service := slow(t, 300*time.Millisecond)
	_, url := front(t, "alertmanager", "alertmanager", service)
	sendTo := alertmanagerEvery("5s")(t, url)
	for _, do := range []string{"", "resolved "} {
		ran := len(service.Received("")) + 3
		for _, alert := range []string{"a", "b", "c"} {
			sendTo(t, do+alert)
		}
		service.AwaitReceived(t, "", ran)
	}
	var told []string
	for _, body := range events(t, service) {
		for _, alert := range []string{"a", "b", "c"} {
			for _, status := range []string{"firing", "resolved"} {
				if strings.Contains(body, fmt.Sprintf(`"groupLabels":{"alertname":%q}`, alert)) &&
					strings.Contains(body, fmt.Sprintf(`"service","status":%q`, status)) {
					told = append(told, alert+" "+status)
				}
			}
		}
	}
	slices.Sort(told)
	if want := "a firing, a resolved, b firing, b resolved, c firing, c resolved"; strings.Join(told, ", ") != want {
		t.Errorf("the service was told of %v", told)
	}
	if n := service.MostAtOnce("alertmanager/service"); n != 1 {
		t.Errorf("%d notifications ran at once", n)
	}
}

// With the ID of a group the first example of the page for unknown senders still tells of both.
func TestTheRouteForAnUnknownSenderDoesNotSwallowResolved(t *testing.T) {
	service := slow(t, 100*time.Millisecond)
	_, url := frontWith(t, "other", "acme", service, "{body.id}", "{body.groupKey}")
	send := alertmanagerEvery("5s")(t, url)
	send(t, "a")
	service.AwaitReceived(t, "", 1)
	send(t, "resolved a")
	told := service.AwaitReceived(t, "", 2)
	if !strings.Contains(told[0].Body, `"status":"firing"`) ||
		!strings.Contains(told[1].Body, `"service","status":"resolved"`) {
		t.Errorf("the service was told %s", told[1].Body)
	}
}

// The registry gives up waiting after a second and sends the event again, until the service has
// answered.
func TestEachEventOfTheRegistryRunsOnceInAServiceThatIsSlowerThanItWaits(t *testing.T) {
	service, send := behind(t, "docker-registry", 2500*time.Millisecond)
	for _, blob := range []string{"one", "two", "three"} {
		send(blob)
	}
	service.AwaitReceived(t, "", 3)
	if ran := events(t, service); len(ran) != 3 {
		t.Errorf("%d events ran: %v", len(ran), ran)
	}
	if n := service.MostAtOnce("registry/shop"); n != 1 {
		t.Errorf("%d events ran at once", n)
	}
}

func TestTwoUploadsThatEndTogetherBothRun(t *testing.T) {
	service, send := behind(t, "tusd", 500*time.Millisecond)
	for _, upload := range []string{"one", "two", "three"} {
		send(upload)
	}
	service.AwaitReceived(t, "", 3)
	if ran := events(t, service); len(ran) != 3 {
		t.Errorf("%d events ran: %v", len(ran), ran)
	}
}

func TestEqualMessagesOfAQueueEachRunOneAtATime(t *testing.T) {
	service, send := behind(t, "nsq_to_http", 200*time.Millisecond)
	for _, message := range []string{"1", "2", "3", "same", "same", "4"} {
		send(message)
	}
	var ran []string
	for _, r := range service.AwaitReceived(t, "", 6) {
		ran = append(ran, r.Body)
	}
	slices.Sort(ran)
	if text := strings.Join(ran, " "); text != "1 2 3 4 same "+"same" {
		t.Errorf("it ran %s", text)
	}
	if n := service.MostAtOnce("nsq"); n != 1 {
		t.Errorf("%d messages ran at once", n)
	}
}

// TestWhatSendersDoOnARefusal is the table of docs/senders/other.md.
func TestWhatSendersDoOnARefusal(t *testing.T) {
	for name, want := range map[string]map[int]string{
		"alertmanager":    {409: "lost", 429: "lost", 503: "again", 301: "lost"},
		"docker-registry": {409: "again", 429: "again", 503: "again", 301: "lost"},
		"tusd":            {409: "lost", 429: "lost", 503: "again", 301: "lost"},
		"nsq_to_http":     {409: "again", 429: "again", 503: "again", 301: "lost"},
		"syslog-ng":       {409: "again", 429: "again", 503: "again", 301: "again"},
	} {
		t.Run(name, func(t *testing.T) {
			service := newScripted(t)
			sendTo := start(t, name, service.URL+"/hooks")
			for status, does := range want {
				service.check(t, status, does, func(event string) { sendTo(t, event) })
			}
		})
	}
}

// check refuses an event with status, and waits until it comes again. One that is to be lost has
// not come again when the next one has, which is refused with the 503 that every sender here tries
// again.
func (s *scripted) check(t *testing.T, status int, does string, send func(event string)) {
	t.Helper()
	refused := s.refuse(t, status, send)
	if does == "again" {
		testkit.Until(t, fmt.Sprintf("after %d the event comes again", status), func() bool {
			return s.bodies()[refused] > 1
		})
		return
	}
	after := s.refuse(t, 503, send)
	testkit.Until(t, "the event after it comes again", func() bool { return s.bodies()[after] > 1 })
	if s.bodies()[refused] > 1 {
		t.Errorf("after %d the event came again", status)
	}
}

// refuse sends an event, which gets this status, and returns its body.
func (s *scripted) refuse(t *testing.T, status int, send func(event string)) string {
	t.Helper()
	before := s.bodies()
	s.answer(testkit.Reply(status, "{}", "Location: /elsewhere"))
	send(fmt.Sprintf("event-%d-%d", len(before), status))
	return s.awaitNew(t, before)
}

// bodies returns how often each event came.
func (s *scripted) bodies() map[string]int {
	came := map[string]int{}
	for _, r := range s.Received("/hooks") {
		came[r.Body]++
	}
	return came
}

// awaitNew waits for an event that was not there before.
func (s *scripted) awaitNew(t *testing.T, before map[string]int) (body string) {
	t.Helper()
	testkit.Until(t, "an event comes", func() bool {
		for b := range s.bodies() {
			if before[b] == 0 {
				body = b
			}
		}
		return body != ""
	})
	return body
}
