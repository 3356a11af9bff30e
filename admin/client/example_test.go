package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"hooklock/admin/client"
)

// answering stands for a Hooklock in these examples: it gives one answer to everybody.
func answering(status int, body string) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/release") {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
}

// A service that works longer than its answer asks before each step whether to go on.
func ExampleClient_Guard() {
	hooklock := answering(409, `{"proceed":false,"status":"CANCEL_REQUESTED"}`)
	defer hooklock.Close()
	c, err := client.New(client.Options{URL: hooklock.URL})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	delivery := http.Header{} // of the request that Hooklock forwarded
	delivery.Set("Hooklock-Execution", "exec_7hq3p2k5wv6d4x3nbyc2zt5gj4m6s7ra")
	delivery.Set("Hooklock-Fencing-Token", "42")
	delivery.Set("Hooklock-Callback-Key", "from the request")
	me, err := client.CallbackFrom(delivery)
	if err != nil {
		fmt.Println(err)
		return
	}

	verdict, err := c.Guard(context.Background(), me, "charge", []string{"charge", "mail"})
	if err != nil {
		fmt.Println(err)
		return
	}
	if !verdict.Proceed {
		fmt.Println("stop:", verdict.Status)
	}
	// Output: stop: CANCEL_REQUESTED
}

// A cron job takes a lock, so that it runs on one machine at a time.
func ExampleClient_Acquire() {
	hooklock := answering(201,
		`{"workflow":"nightly","executionId":"exec_7hq3p2k5wv6d4x3nbyc2zt5gj4m6s7ra","token":43,"callbackKey":"k","holder":"cron@db-1","held":true}`)
	defer hooklock.Close()
	c, err := client.New(client.Options{URL: hooklock.URL, Token: client.Token("from a file: see TokenFile")})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	ctx := context.Background()
	lock, err := c.Acquire(ctx, "nightly",
		client.AcquireRequest{Holder: "cron@db-1", TTL: time.Minute, Wait: 10 * time.Second})
	var refused *client.Problem
	if errors.As(err, &refused) && refused.Status == http.StatusConflict {
		fmt.Println("another runs:", refused.ExistingExecutionID)
		return
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() {
		if err := c.Release(ctx, "nightly", lock.ExecutionID, lock.Token); err != nil {
			fmt.Println(err)
		}
	}()
	fmt.Println("fencing token", lock.Token)
	// Output: fencing token 43
}

// A program lists what failed in the last day, over all pages.
func Example() {
	hooklock := answering(200,
		`{"executions":[{"executionId":"exec_7hq3p2k5wv6d4x3nbyc2zt5gj4m6s7ra","workflow":"stripe/acme","status":"FAILED","error":{"code":"upstream_timeout"}}],"nextCursor":""}`)
	defer hooklock.Close()
	c, err := client.New(client.Options{URL: hooklock.URL})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	for x, err := range c.Executions(context.Background(), client.ExecutionQuery{Status: client.Failed, Since: "24h"}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(x.Workflow, x.Error.Code)
	}
	// Output: stripe/acme upstream_timeout
}
