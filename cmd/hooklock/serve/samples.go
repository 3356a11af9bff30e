package serve

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"hooklock/cmd/hooklock/cli"
)

// sendSamples sends the deliveries that a newcomer finds on the page of the demo. It returns when
// all are answered, or when ctx is done.
func sendSamples(ctx context.Context, door string, service *receiver) {
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	var slow sync.WaitGroup
	defer slow.Wait()
	slow.Go(func() { sendSample(ctx, client, door+"/hooks/initech?sleep=2s", "evt_slow") })
	for !service.has("/hooks/initech") {
		if !cli.Pause(ctx, 10*time.Millisecond) {
			return
		}
	}
	for _, one := range [][2]string{
		{"/hooks/initech", "evt_refused"}, // while evt_slow runs
		{"/hooks/globex", "evt_twice"},
		{"/hooks/globex", "evt_twice"},
		{"/orders/initech?fails", "evt_parked"},
		{"/mails/globex?fails", "evt_dead_letter"},
	} {
		sendSample(ctx, client, door+one[0], one[1])
	}
}

// sendSample sends a delivery; like any sender, again until it is not answered 503.
func sendSample(ctx context.Context, client *http.Client, target, event string) {
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+target,
			strings.NewReader(`{"id":"`+event+`"}`))
		if err != nil {
			return
		}
		answer, err := client.Do(r)
		if err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode != http.StatusServiceUnavailable {
				return
			}
		}
		if !cli.Pause(ctx, time.Second) {
			return
		}
	}
}
